package checks

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every link inside the repository leads to a file, and its anchor to a heading. A link whose text is the name of a test leads to the file
// with this test.
func TestLinks(t *testing.T) {
	all := pages(t)
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.name] = p.anchors()
	}
	links := 0
	for _, p := range all {
		for _, l := range p.links() {
			if strings.Contains(l.target, "://") || strings.HasPrefix(l.target, "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(l.target, "#")
			name := p.name
			if file != "" {
				name = path.Join(path.Dir(p.name), file)
			}
			text, err := os.ReadFile(filepath.Join(root, name))
			if info, serr := os.Stat(filepath.Join(root, name)); serr != nil || err != nil && !info.IsDir() {
				t.Errorf("%s: no file %s", l.where, name)
				continue
			}
			if anchor != "" && !anchors[name][anchor] {
				t.Errorf("%s: %s has no heading #%s", l.where, name, anchor)
			}
			if test := strings.Trim(l.text, "`"); testName.MatchString(test) {
				if declared := regexp.MustCompile(`(?m)^func ` + test + `\(`); !declared.Match(text) {
					t.Errorf("%s: %s has no %s", l.where, name, test)
				}
			}
		}
	}
	if links < 10 {
		t.Errorf("only %d links found", links)
	}
}
