package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

func TestDemoWithoutAPage(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.html")
	synctest.Test(t, func(t *testing.T) {
		var out, complaints bytes.Buffer
		if code := run(t.Context(), []string{"demo", "--load", "6s", "--shoppers", "240", "--pause", "300ms", "--report", report}, &out, &complaints); code != 0 {
			t.Fatalf("exit %d: %s", code, &complaints)
		}
		figures := func(way string) (pages, queries int, rate float64, atOnce int) {
			_, row, ok := strings.Cut(out.String(), "\n"+way)
			if !ok {
				t.Fatalf("no row %q in\n%s", way, &out)
			}
			if _, err := fmt.Sscan(row, &pages, &queries, &rate, &atOnce); err != nil {
				t.Fatal(err)
			}
			return
		}
		_, plain, _, most := figures("by hand: GET, else query and SET EX")
		pages, ours, _, one := figures("mayfly")
		if pages == 0 || plain < 5*ours || most < 20 || one > 2 {
			t.Errorf("the demo does not show what it is for:\n%s", &out)
		}
	})
	page, err := os.ReadFile(report)
	if err != nil || !bytes.Contains(page, []byte(`"mark":"everything expires`)) || bytes.Contains(page, []byte("src=\"http")) {
		t.Errorf("%d bytes of report, %v", len(page), err)
	}
}
