package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The command is used by itself, and as go vet's tool, as docs/ttlguard.md has it.
func TestCommand(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "ttlguard")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		name     string
		args     []string
		says     []string
		saysNone string
		succeeds bool
	}{
		{"by itself", []string{tool, "./fewer"}, []string{"fewer.go:11:6: Set: an expiration of 0", "fewer.go:12:6: Incr creates"}, "fewer_test.go", false},
		{"with a flag that is none", []string{tool, "-sure=often", "./fewer"}, []string{`invalid boolean value "often" for -sure`}, "fewer.go", false},
		{"as go vet's tool", []string{"go", "vet", "-vettool=" + tool, "-intests", "./fewer"}, []string{"fewer.go:11:6: Set: an expiration of 0", "Incr creates", "fewer_test.go:11:36"}, "", false},
		{"as go vet's tool, with a flag", []string{"go", "vet", "-vettool=" + tool, "-sure", "./fewer"}, []string{"Set: an expiration"}, "Incr", false},
		{"as go vet's tool, across packages", []string{"go", "vet", "-vettool=" + tool, "./helpers"}, []string{"Put2, which calls Set"}, "", false},
		{"where nothing is wrong", []string{"go", "vet", "-vettool=" + tool, "./helpers/nothing"}, nil, "nothing.go", true},
	} {
		cmd := exec.Command(c.args[0], c.args[1:]...)
		cmd.Dir = "ttlvet/testdata"
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if (err == nil) != c.succeeds {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, says := range c.says {
			if !strings.Contains(string(out), says) {
				t.Errorf("%s: not %q:\n%s", c.name, says, out)
			}
		}
		if c.saysNone != "" && strings.Contains(string(out), c.saysNone) {
			t.Errorf("%s: %q:\n%s", c.name, c.saysNone, out)
		}
	}
}
