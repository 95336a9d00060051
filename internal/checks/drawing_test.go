package checks

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	update = flag.Bool("update", false, "draw docs/house.md anew")
	house  = flag.String("house", root, "the checkout to be drawn by -print")
	prints = flag.Bool("print", false, "print the drawing of -house")
)

const begin, end = "<!-- drawn: rooms -->\n", "<!-- end -->"

// docs/house.md shows the rooms as they are: this test draws it with -update.
func TestTheDrawingIsTheHouse(t *testing.T) {
	if *prints {
		all, err := goFiles(*house)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Print(draw(all, true))
		return
	}
	const file = root + "/docs/house.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), begin)
	old, after, found := strings.Cut(rest, end)
	if !found {
		t.Fatalf("%s has no place for the drawing: %q", file, begin)
	}
	now := draw(files(t), false)
	switch {
	case old == now:
	case *update:
		if err := os.WriteFile(file, []byte(before+begin+now+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the drawing in %s is out of date: go test ./internal/checks -run Drawing -update", file)
	}
}

// draw lists the rooms wing by wing, each with its floor (one above the highest room that it imports) and the rooms that it imports.
// withLines adds the numbers of lines, which change too often for a page.
func draw(files []goFile, withLines bool) string {
	imports, lines := make(map[string][]string), make(map[string]int)
	for _, f := range files {
		if f.test {
			continue
		}
		dir := f.dir
		lines[dir] += f.File(f.syntax.Pos()).LineCount()
		for _, spec := range f.syntax.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if inside, ok := strings.CutPrefix(imported, module); ok {
				if room := strings.TrimPrefix(inside, "/"); !slices.Contains(imports[dir], room) {
					imports[dir] = append(imports[dir], room)
				}
			}
		}
	}
	floors := make(map[string]int)
	var floor func(dir string) int
	floor = func(dir string) int {
		if floors[dir] == 0 {
			highest := 0
			for _, room := range imports[dir] {
				highest = max(highest, floor(room))
			}
			floors[dir] = highest + 1
		}
		return floors[dir]
	}
	byWing := make(map[string][]string)
	for dir := range lines {
		floor(dir)
		wing := "the front: what users import"
		if strings.HasPrefix(dir, "internal/") {
			if wing = path.Dir(dir); wing == "internal" {
				wing = "internal: what several wings stand on"
			}
		}
		byWing[wing] = append(byWing[wing], dir)
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, wing := range slices.Backward(slices.Sorted(maps.Keys(byWing))) {
		fmt.Fprintf(&b, "**%s**\n\n```\n", wing)
		rooms := byWing[wing]
		slices.SortFunc(rooms, func(a, b string) int { return cmp.Or(floors[b]-floors[a], strings.Compare(a, b)) })
		for _, dir := range rooms {
			names := make([]string, len(imports[dir]))
			for i, room := range imports[dir] {
				names[i] = roomOf(room)
			}
			slices.Sort(names)
			to := strings.Join(names, " ")
			if to != "" {
				to = " -> " + to
			}
			if withLines {
				to = fmt.Sprintf(" %6d lines%s", lines[dir], to)
			}
			row := fmt.Sprintf("%d  %-14s%s", floors[dir], strings.TrimPrefix(roomOf(dir), strings.TrimPrefix(wing, "internal/")+"/"), to)
			b.WriteString(strings.TrimRight(row, " ") + "\n")
		}
		b.WriteString("```\n\n")
	}
	return b.String()
}
