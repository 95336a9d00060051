package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// demonstrating runs the demo for a second and returns what it printed.
func demonstrating(t *testing.T, more ...string) string {
	t.Helper()
	var out, complaints bytes.Buffer
	flags := append([]string{"demo", "--addr", "127.0.0.1:0", "--for", "1s", "--shoppers", "20", "--pause", "100ms", "--query", "1ms"}, more...)
	if code := run(t.Context(), flags, &out, &complaints); code != 0 {
		t.Errorf("exit %d: %s", code, &complaints)
	}
	return out.String()
}

// The demo's carts and logins are there when it is run again, but for what has ended meanwhile, and none of its keys stays for ever.
func TestTheDemoSurvivesItsRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out := demonstrating(t, "--dir", dir); !strings.Contains(out, "carts and logins survive Ctrl-C: they are kept in "+dir) {
		t.Errorf("at first: %s", out)
	}
	db, err := embedded.Open(embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	ctx, rdb := t.Context(), db.Client()
	logins := len(rdb.Keys(ctx, "mayfly-demo:login:*").Val())
	if logins == 0 {
		t.Error("no login was kept")
	}
	for _, key := range rdb.Keys(ctx, "*").Val() {
		if rdb.TTL(ctx, key).Val() < 0 {
			t.Errorf("%s stays for ever", key)
		}
	}
	rdb.Set(ctx, "mayfly-demo:over", "v", time.Millisecond)
	if err := db.Close(ctx); err != nil {
		t.Fatal(err)
	}
	var keys, ended int
	out := demonstrating(t, "--dir", dir, "--mayfly")
	if n, _ := fmt.Sscanf(out, "mayfly: %d keys of the last run are still there, and %d have expired since", &keys, &ended); n != 2 || keys < logins {
		t.Errorf("%d logins were there; then: %s", logins, out)
	}
}

// A second demo at the same time, or one without a directory, still runs.
func TestADemoThatKeepsNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(os.Getenv("XDG_STATE_HOME"), "mayfly", "demo") // see TestMain
	db, err := embedded.Open(embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	var demos sync.WaitGroup
	demos.Go(func() {
		if out := demonstrating(t); !strings.Contains(out, "nothing survives this run: another demo keeps its data in "+dir) {
			t.Errorf("the second at a time: %s", out)
		}
	})
	demos.Go(func() {
		if out := demonstrating(t, "--dir", "none"); strings.Contains(out, "survive") || strings.Contains(out, "last run") {
			t.Errorf("without a directory: %s", out)
		}
	})
	demos.Wait()
}

func TestDemoWithoutAPage(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.html")
	shoppers := "240"
	if effort.Race { // it is about the code, not the figures
		shoppers = "24"
	}
	synctest.Test(t, func(t *testing.T) {
		var out, complaints bytes.Buffer
		if code := run(t.Context(), []string{"demo", "--load", "6s", "--shoppers", shoppers, "--pause", "300ms", "--report", report}, &out, &complaints); code != 0 {
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
		if !effort.Race && (pages == 0 || plain < 5*ours || most < 20 || one > 2) {
			t.Errorf("the demo does not show what it is for:\n%s", &out)
		}
	})
	page, err := os.ReadFile(report)
	if err != nil || !bytes.Contains(page, []byte(`"mark":"everything expires`)) || bytes.Contains(page, []byte("src=\"http")) {
		t.Errorf("%d bytes of report, %v", len(page), err)
	}
}
