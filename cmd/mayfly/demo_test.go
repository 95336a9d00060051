package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// demonstrating runs the demo until the shop is open, and enough has happened in it, and returns what it printed.
func demonstrating(t *testing.T, enough func() bool, more ...string) string {
	t.Helper()
	ctx, ctrlC := context.WithCancel(t.Context())
	defer ctrlC()
	printed, out := io.Pipe()
	var complaints bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		flags := append([]string{"demo", "--addr", "127.0.0.1:0", "--shoppers", "20", "--pause", "10ms", "--query", "1ms"}, more...)
		ended <- run(ctx, flags, out, &complaints)
		out.Close()
	}()
	var all strings.Builder
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		fmt.Fprintln(&all, lines.Text())
		if strings.Contains(lines.Text(), "the shop is open") {
			expect.Eventually(t, "enough has happened", enough)
			ctrlC()
		}
	}
	if code := <-ended; code != 0 {
		t.Errorf("exit %d: %s", code, &complaints)
	}
	return all.String()
}

func opened() bool { return true }

// journalHas reports whether a journal in dir mentions text.
func journalHas(dir, text string) bool {
	found := false
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b, _ := os.ReadFile(path)
			found = found || bytes.Contains(b, []byte(text))
		}
		return nil
	})
	return found
}

// The demo's carts and logins are there when it is run again, but for what has ended meanwhile, and none of its keys stays for ever.
func TestTheDemoSurvivesItsRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	someLogin := func() bool { return journalHas(dir, "mayfly-demo:login:") }
	if out := demonstrating(t, someLogin, "--dir", dir); !strings.Contains(out, "carts and logins survive Ctrl-C: they are kept in "+dir) {
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
	out := demonstrating(t, opened, "--dir", dir, "--mayfly")
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
		if out := demonstrating(t, opened); !strings.Contains(out, "nothing survives this run: another demo keeps its data in "+dir) {
			t.Errorf("the second at a time: %s", out)
		}
	})
	demos.Go(func() {
		if out := demonstrating(t, opened, "--dir", "none"); strings.Contains(out, "survive") || strings.Contains(out, "last run") {
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
