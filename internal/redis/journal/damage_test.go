package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// Damage to any byte of the base or of the manifest is refused with nothing changed, or has no effect on the data.
func TestDamageToBaseAndManifest(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	for _, command := range [][]string{{"SET", "a", "1", "EX", "100"}, {"RPUSH", "l", "a", "b"}, {"HSET", "h", "f", "v"}, {"SET", "n", "70000"}} {
		r.play(command...)
	}
	if !r.j.Compact() {
		t.Fatal("no compaction")
	}
	r.j.mu.Lock()
	for r.j.compact.running {
		r.j.changed.Wait()
	}
	r.j.mu.Unlock()
	r.play("SET", "last", "x")
	r.written()
	files := r.j.files
	r.close()
	names := append(files.names(), manifestName)
	whole := map[string][]byte{}
	for _, name := range names {
		whole[name], _ = os.ReadFile(filepath.Join(dir, folder, name))
	}
	want := opened(t, dir)
	for _, name := range []string{files.base.name, manifestName} {
		path := filepath.Join(dir, folder, name)
		for at := 0; at < len(whole[name]); at += effort.Times(3, 1) {
			for flip := 1; flip < 256; flip += effort.Times(255, 5) {
				damaged := slices.Clone(whole[name])
				damaged[at] ^= byte(flip)
				os.WriteFile(path, damaged, 0o644)
				got := opened(t, dir)
				var d *Damaged
				if got.err == nil && got.keys != want.keys {
					t.Fatalf("%s, byte %d as %q: %d keys of %d, and no error: %q", name, at, damaged[at], got.keys, want.keys, damaged)
				}
				if got.err != nil && !errors.As(got.err, &d) {
					t.Fatalf("%s, byte %d as %q: %v", name, at, damaged[at], got.err)
				}
				if got.err != nil {
					if now, _ := os.ReadFile(path); string(now) != string(damaged) {
						t.Fatalf("%s, byte %d as %q: the file was changed", name, at, damaged[at])
					}
				}
				entries, _ := os.ReadDir(filepath.Join(dir, folder))
				for _, entry := range entries {
					if whole[entry.Name()] == nil && entry.Name() != lockName {
						os.Remove(filepath.Join(dir, folder, entry.Name()))
					}
				}
				for name, b := range whole {
					if now, err := os.ReadFile(filepath.Join(dir, folder, name)); err != nil && got.err != nil || err == nil && got.err != nil && name != filepath.Base(path) && string(now) != string(b) {
						t.Fatalf("%s, byte %d as %q: refused, and %s was changed", filepath.Base(path), at, damaged[at], name)
					}
					os.WriteFile(filepath.Join(dir, folder, name), b, 0o644)
				}
			}
		}
	}
}

type opening struct {
	keys int
	err  error
}

// opened opens the journal of dir into a new engine.
func opened(t *testing.T, dir string) (o opening) {
	t.Helper()
	e := engine.New(engine.Options{Seed: 1})
	j := &Journal{dir: filepath.Join(dir, folder), clock: func() int64 { return start }}
	if _, o.err = j.open(Options{Dir: dir}, e); o.err == nil {
		j.file.Close()
		o.keys = e.Figures(start).Keys
	}
	return o
}

// What a crash leaves of a value is torn, whatever the value looks like.
func TestATornValueThatLooksLikeCommands(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir}, start)
	r.play("SET", "a", "1")
	r.written()
	whole := r.j.Position()
	file := r.file()
	r.close()
	begun, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"5000 bullets":      strings.Repeat("\n* a bullet", 5000),
		"commands of users": "\n" + strings.Repeat("*1\r\n$4\r\nPING\r\n", 2),
		"arrays":            strings.Repeat("\n*1\r\n$1\r\nx\r\n", 5000),
		"zeros at the end":  "page" + strings.Repeat("\x00", 4096),
	} {
		torn := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$%d\r\n%s", 1<<20, value)
		if name == "zeros at the end" { // they begin within the value, and reach beyond it
			torn = "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$90\r\n" + value
		}
		os.WriteFile(file, append(slices.Clone(begun), torn...), 0o644)
		r, err := tryRig(t, Options{Dir: dir}, start)
		if err != nil {
			t.Errorf("%s: %.200v", name, err)
			continue
		}
		if r.report.CutAt != whole || r.play("DBSIZE") != ":1" {
			t.Errorf("%s: %+v, %s keys", name, r.report, r.play("DBSIZE"))
		}
		r.close()
	}
}

// A value that looks like whole writes to its end is torn if the writer had not written it to its end. Anything else is damaged.
func TestATornValueThatEndsInWholeWrites(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir}, start)
	play := func(words ...string) (note []byte) {
		r.play(words...)
		r.written()
		note, err := os.ReadFile(filepath.Join(dir, folder, lockName))
		if err != nil {
			t.Fatal(err)
		}
		return note
	}
	value := strings.Repeat("\r\n*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\ny\r\n", 100) + "the end"
	play("SET", "a", "1")
	ofB := play("SET", "b", value)
	ofC := play("SET", "c", "1")
	file := r.file()
	r.close()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	inB, endOfB := bytes.Index(whole, []byte("*3\r\n$3\r\nSET\r\n$1\r\nb")), bytes.Index(whole, []byte("the end"))
	longer := bytes.Replace(whole, fmt.Appendf(nil, "$%d", len(value)), fmt.Appendf(nil, "$9%d", len(value)), 1)
	for _, c := range []struct {
		name string
		file []byte
		note []byte
		torn bool
	}{
		{"killed within b", whole[:endOfB], ofB, true},
		{"cut by somebody, after c", whole[:endOfB], ofC, false},
		{"damaged, and the note is old", longer, ofB, false},
		{"damaged", longer, ofC, false},
		{"no note", whole[:endOfB], nil, false},
	} {
		os.WriteFile(file, c.file, 0o644)
		os.WriteFile(filepath.Join(dir, folder, lockName), c.note, 0o644)
		r, err := tryRig(t, Options{Dir: dir}, start)
		var damaged *Damaged
		switch {
		case c.torn && err != nil || !c.torn && (!errors.As(err, &damaged) || damaged.At != int64(inB)):
			t.Errorf("%s: torn or damaged at %d: %v", c.name, inB, err)
		case c.torn && (r.report.CutAt != int64(inB) || r.play("DBSIZE") != ":1"):
			t.Errorf("%s: cut at %d instead of %d", c.name, r.report.CutAt, inB)
		}
		if err == nil {
			r.close()
		}
	}
}

// A command may have more arguments than a client can send in one, such as what a script or SPOP removes.
func TestAnEffectOfMillionsOfArguments(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	words := make([]string, 1_100_000)
	for i := range words {
		words[i] = "v"
	}
	r.play(append([]string{"RPUSH", "l"}, words...)...)
	r.close()
	r = newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	defer r.close()
	if n := r.play("LLEN", "l"); n != ":1100000" {
		t.Errorf("%s elements", n)
	}
}
