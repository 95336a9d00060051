package engine

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/differences.md lists all differences, and the rules of expiry that are not played to the end.
func TestDifferencesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(differences) > 15 {
		t.Errorf("%d differences: 15 are enough", len(differences))
	}
	var rows strings.Builder
	for _, d := range differences {
		fmt.Fprintf(&rows, "| %s | %s |\n", d.name, d.reason)
	}
	if _, after, ok := strings.Cut(string(text), "| --- | --- |\n"); !ok || !strings.HasPrefix(after, rows.String()+"\n") {
		t.Errorf("the table of docs/differences.md should be\n%s", rows.String())
	}
	for _, r := range readRules(t) {
		if cutShort[r.id] > 0 && !strings.Contains(string(text), r.short()) {
			t.Errorf("docs/differences.md does not mention %s", r.short())
		}
	}
}
