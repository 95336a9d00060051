package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// A compaction names the next file before the old one is complete, so a crash in between may leave a part of a unit at the end of a file
// that is not the last.
func TestACrashBeforeTheOldFileIsComplete(t *testing.T) {
	dir, crashed := t.TempDir(), t.TempDir()
	r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	r.play("SET", "first", "v")
	ends := []int64{r.j.Position()}
	for _, key := range []string{"a", "b", "c"} {
		r.play("SET", key, "v")
		ends = append(ends, r.j.Position())
	}
	r.written()
	old := filepath.Base(r.file())
	copied := sync.OnceFunc(func() {
		if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
			t.Error(err)
		}
	})
	r.j.Begin(func(f func(int64, *engine.Engine)) {
		copied()
		r.do(f)
	})
	r.j.Compact()
	r.compacted()
	r.close()
	next, path := filepath.Join(crashed, folder, incrName(2)), filepath.Join(crashed, folder, old)
	whole, err := os.ReadFile(path)
	if err != nil || int64(len(whole)) != ends[3] {
		t.Fatalf("%d bytes of %d, %v", len(whole), ends[3], err)
	}
	for n := ends[0]; n < ends[3]; n++ {
		dir := t.TempDir()
		if err := errors.Join(os.Truncate(path, n), os.CopyFS(dir, os.DirFS(crashed)), os.WriteFile(path, whole, 0o644)); err != nil {
			t.Fatal(err)
		}
		keys := 0
		for keys < 3 && ends[keys+1] <= n {
			keys++
		}
		r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
		if r.report.Cut != n-ends[keys] || r.report.Cut > 0 && (filepath.Base(r.report.CutFile) != old || r.report.CutAt != ends[keys]) {
			t.Errorf("the first %d bytes: cut %+v", n, r.report)
		}
		r.play("SET", "after", "v")
		r.close()
		r = newRig(t, Options{Dir: dir, MinCompact: -1}, start)
		if got := r.play("DBSIZE"); got != ":"+strconv.Itoa(keys+2) || r.report.Cut != 0 {
			t.Errorf("the first %d bytes, opened again: %s keys of %d and two, %+v", n, got, keys, r.report)
		}
		r.close()
	}
	// Only a crash of the whole machine with the policy no can lose the end of the old file and not the next one.
	if err := errors.Join(os.Truncate(path, ends[3]-1), os.WriteFile(next, whole, 0o644)); err != nil {
		t.Fatal(err)
	}
	var damaged *Damaged
	if _, err := tryRig(t, Options{Dir: crashed}, start); !errors.As(err, &damaged) || damaged.File != path {
		t.Errorf("a file after the torn one has data: %v", err)
	}
}

// A crash after the first compaction has written its base, and before the manifest names it. A base that comes before the increments is another
// matter: the manifest has lost it.
func TestACrashBeforeTheFirstBaseIsNamed(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	r.play("SET", "a", "1")
	r.close()
	path := func(name string) string { return filepath.Join(dir, folder, name) }
	with := manifest{incrs: []part{{incrName(1), 1, incremental}, {incrName(2), 2, incremental}}}
	for name, text := range map[string]string{incrName(2): "", baseName(2): "REDIS0011 and so on", manifestName: with.String()} {
		if err := os.WriteFile(path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r = newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	if got := r.play("GET", "a"); got != "$1\r\n1" {
		t.Errorf("a is %q", got)
	}
	r.close()
	if _, err := os.Stat(path(baseName(2))); err == nil {
		t.Error("the base that nothing names is left")
	}
	if err := os.WriteFile(path(baseName(1)), []byte("REDIS0011 and so on"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := tryRig(t, Options{Dir: dir}, start); err == nil || !strings.Contains(err.Error(), "it names no base") {
		t.Errorf("with a base that the manifest has lost: %v", err)
	}
}
