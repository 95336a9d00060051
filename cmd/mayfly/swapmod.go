package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// modFile is what swap needs to know of a go.mod, as `go mod edit -json` prints it.
type modFile struct {
	Require []modVersion
	Replace []struct{ Old, New modVersion }
}

type modVersion struct{ Path, Version string }

// modFileOf reads the go.mod of the module in dir.
func (s *swapping) modFileOf(ctx context.Context, dir string) (m modFile, err error) {
	out, err := s.goTool(ctx, dir, "mod", "edit", "-json")
	if err != nil {
		return m, fmt.Errorf("go mod edit -json: %s", strings.TrimSpace(string(out)))
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("go mod edit -json: %w", err)
	}
	return m, nil
}

// hasDouble reports whether the module itself says which mayfly it uses.
func (m modFile) hasDouble() bool {
	return slices.ContainsFunc(m.Require, func(r modVersion) bool { return r.Path == doubleModule }) ||
		slices.ContainsFunc(m.Replace, func(r struct{ Old, New modVersion }) bool { return r.Old.Path == doubleModule })
}

// pinNeighbours makes the relative paths in the copy's go.mod, which begin at the module's root, absolute: the directories of a monorepo are
// not copied with the module.
func (s *swapping) pinNeighbours(ctx context.Context, root string) error {
	m, err := s.modFileOf(ctx, s.dir)
	if err != nil {
		return err
	}
	edit := []string{"mod", "edit"}
	for _, r := range m.Replace {
		if path := filepath.FromSlash(r.New.Path); r.New.Version == "" && !filepath.IsAbs(path) {
			old := r.Old.Path
			if r.Old.Version != "" {
				old += "@" + r.Old.Version
			}
			edit = append(edit, "-replace="+old+"="+filepath.Join(root, path))
		}
	}
	if len(edit) == 2 {
		return nil
	}
	if out, err := s.goTool(ctx, s.dir, edit...); err != nil {
		return fmt.Errorf("go %s: %s", strings.Join(edit, " "), strings.TrimSpace(string(out)))
	}
	return nil
}

// steps are the calls of the go command that make the module in dir require mayfly: the one it was told, that of the module, or this
// program's own.
func (s *swapping) steps(ctx context.Context, dir string) ([][]string, error) {
	tidy := []string{"mod", "tidy", "-e"}
	if s.with != "" {
		with, err := filepath.Abs(s.with)
		return [][]string{{"mod", "edit", "-require=" + doubleModule + "@v0.0.0", "-replace=" + doubleModule + "=" + with}, tidy}, err
	}
	version := s.version
	if version == "" {
		m, err := s.modFileOf(ctx, dir)
		if err != nil || m.hasDouble() {
			return [][]string{tidy}, err
		}
		version = ownVersion()
	}
	return [][]string{{"get", doubleModule + "@" + version}, tidy}, nil
}
