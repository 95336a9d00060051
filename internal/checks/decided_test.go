package checks

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each answer in docs/where-is-it-decided.md names a file and a name declared in it.
func TestWhereItIsDecided(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/where-is-it-decided.md"))
	if err != nil {
		t.Fatal(err)
	}
	answers := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.HasSuffix(strings.TrimSpace(cells[0]), "?") {
			continue
		}
		answers++
		file, name := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		source, err := os.ReadFile(filepath.Join(root, strings.Trim(file, "`")))
		if err != nil {
			t.Errorf("%s %v", cells[0], err)
			continue
		}
		name = regexp.QuoteMeta(strings.Trim(name, "`"))
		declared := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |var |const |\t)` + name + `\b`)
		if !declared.Match(source) {
			t.Errorf("%s %s declares no %s", cells[0], file, name)
		}
	}
	if answers < 30 {
		t.Errorf("%d answers, want 30", answers)
	}
}
