package journal

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// Commands run while the journal is compacted again and again; reopening it gives the final state.
func TestCompactionBesideWrites(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	dice := rand.New(rand.NewPCG(3, 3))
	compactions := 0
	for i := range effort.Times(1500, 100_000) {
		if dice.IntN(10) == 0 {
			r.mu.Lock()
			r.now += dice.Int64N(1_000_000)
			r.mu.Unlock()
		}
		r.play(chance(dice)...)
		if i%100 == 0 {
			r.compacted()
			if r.j.Compact() {
				compactions++
			}
		}
	}
	if r.compacted(); compactions < 10 {
		t.Errorf("%d compactions", compactions)
	}
	want := r.holdings()
	r.close()
	if left := filesIn(t, filepath.Join(dir, folder)); len(left) != 4 {
		t.Errorf("there are %q", left)
	}
	e := engine.New(engine.Options{Seed: 1})
	j := &Journal{dir: filepath.Join(dir, folder), clock: func() int64 { return r.now }}
	if _, err := j.open(Options{Dir: dir}, e); err != nil {
		t.Fatal(err)
	}
	j.file.Close()
	if got := keysOf(e, r.now); got != keysOf(r.e, r.now) {
		t.Errorf("got %s\nwant %s (%d bytes)", got, keysOf(r.e, r.now), len(want))
	}
}

// keysOf returns every key's payload, in the order of keys.
func keysOf(e *engine.Engine, now int64) string {
	r := &rig{e: e, now: now, s: e.NewSession(engine.SessionOptions{Now: now})}
	var all []string
	for db := range 2 {
		r.play("SELECT", strconv.Itoa(db))
		for _, word := range strings.Fields(r.play("KEYS", "*")) {
			if word[0] != '*' && word[0] != '$' {
				sorted := r.play("DUMP", word)
				if word[0] == 's' {
					sorted = r.play("SORT", word, "ALPHA")
				}
				all = append(all, fmt.Sprintf("%d %s %s %q", db, word, r.play("PEXPIRETIME", word), sorted))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func filesIn(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// A crash at any moment of a compaction leaves a directory that opens with all data. The test copies the directory after every change that
// the compaction makes to it.
func TestACrashWithinACompaction(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	for i := range 200 {
		r.play("SET", strconv.Itoa(i), strings.Repeat("v", 1000))
	}
	r.written()
	r.do(func(int64, *engine.Engine) {}) // waits until nothing runs
	copies := 0
	last := ""
	begin := r.do
	r.j.Begin(func(f func(int64, *engine.Engine)) { // between two pieces
		begin(f)
		if names := strings.Join(filesIn(t, r.j.dir), " "); names != last || copies < 5 {
			last = names
			copies++
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Error(err)
			}
			other := newRig(t, Options{Dir: copied}, start)
			if n := other.play("DBSIZE"); n != ":200" {
				t.Errorf("%s keys of 200 with %s", n, names)
			}
			other.close()
			if left := filesIn(t, other.j.dir); slices.ContainsFunc(left, func(name string) bool { return strings.HasPrefix(name, asidePrefix) }) {
				t.Errorf("%q are left", left)
			}
		}
	})
	r.j.Compact()
	r.compacted()
	if copies < 4 {
		t.Errorf("looked %d times", copies)
	}
	r.close()
}
