package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// rig is an engine with a journal and a clock that moves only when told.
type rig struct {
	t      *testing.T
	mu     sync.Mutex
	now    int64 // unix microseconds
	e      *engine.Engine
	s      *engine.Session
	j      *Journal
	report Report
}

const start = 1_800_000_000_000_000

func newRig(t *testing.T, o Options, now int64) *rig {
	t.Helper()
	r, err := tryRig(t, o, now)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryRig(t *testing.T, o Options, now int64) (*rig, error) {
	r := &rig{t: t, now: now, e: engine.New(engine.Options{Seed: 1})}
	var err error
	if r.j, r.report, err = Open(o, r.e, func() int64 { return r.now }); err != nil {
		return nil, err
	}
	r.s = r.e.NewSession(engine.SessionOptions{Now: now})
	r.j.Begin(r.do)
	return r, nil
}

func (r *rig) do(f func(int64, *engine.Engine)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.now, r.e)
}

// play runs a command and returns its reply.
func (r *rig) play(words ...string) (reply string) {
	r.do(func(now int64, e *engine.Engine) {
		var args [][]byte
		for _, w := range words {
			args = append(args, []byte(w))
		}
		for out := e.Do(now, r.s, args); out == engine.Yielded; out = e.Resume(now, r.s) {
		}
		reply = strings.TrimSuffix(string(r.s.Out.Bytes()), "\r\n")
		r.s.Out.Take(nil)
	})
	return reply
}

// holdings is all that the engine holds, as a snapshot without what a snapshot says of itself.
func (r *rig) holdings() string {
	var b []byte
	r.do(func(now int64, e *engine.Engine) {
		snap := e.Snapshot()
		b, _ = snap.Next(nil, 1<<30)
		snap.End()
	})
	_, data, _ := strings.Cut(string(b), "ctime")
	if len(data) < 5 {
		return ""
	}
	return data[5:]
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.j.Close(); err != nil {
		r.t.Error(err)
	}
}

// file is the path of the newest increment.
func (r *rig) file() string {
	return filepath.Join(r.j.dir, r.j.files.incrs[len(r.j.files.incrs)-1].name)
}

// chance is a random write.
func chance(r *rand.Rand) []string {
	key := func() string { return "k" + strconv.Itoa(r.IntN(6)) }
	ttl := func() string { return strconv.Itoa(1 + r.IntN(5000)) }
	switch r.IntN(16) {
	case 0:
		return []string{"SET", key(), "v", "PX", ttl()}
	case 1:
		return []string{"SET", key(), strings.Repeat("x", r.IntN(30)), "KEEPTTL"}
	case 2:
		return []string{"PEXPIRE", key(), ttl()}
	case 3:
		return []string{"INCR", "n" + key()}
	case 4:
		return []string{"RPUSH", "l" + key(), "a\r\n*1", "b"}
	case 5:
		return []string{"HSET", "h" + key(), "f", "1", "g", "2"}
	case 6:
		return []string{"HPEXPIRE", "h" + key(), ttl(), "FIELDS", "1", "f"}
	case 7:
		return []string{"ZADD", "z" + key(), "1.5", "m", ttl(), "n"}
	case 8:
		return []string{"SADD", "s" + key(), ttl(), "m"}
	case 9:
		return []string{"SPOP", "s" + key()}
	case 10:
		return []string{"DEL", key(), "l" + key()}
	case 11:
		return []string{"EVAL", "redis.call('INCR','n'..KEYS[1]) redis.call('SET',KEYS[1],'s','PX',ARGV[1]) return 1", "1", key(), ttl()}
	case 12:
		return []string{"RENAME", key(), key()}
	case 13:
		return []string{"SELECT", strconv.Itoa(r.IntN(2))}
	case 14:
		return []string{"HGET", "h" + key(), "f"}
	default:
		return []string{"GET", key()}
	}
}

// written waits until all that was recorded is in the file.
func (r *rig) written() {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	for r.j.wrote < r.j.appended.Load() {
		r.j.changed.Wait()
	}
}

// compacted waits until no compaction runs.
func (r *rig) compacted() {
	r.j.mu.Lock()
	defer r.j.mu.Unlock()
	for r.j.compact.running {
		r.j.changed.Wait()
	}
	if r.j.compact.failed != nil {
		r.t.Error(r.j.compact.failed)
	}
}

// A journal that is cut at any byte opens as the state after the last unit that is whole, and says what it cut.
func TestEveryPrefixIsAState(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	dice := rand.New(rand.NewPCG(7, 7))
	states := map[int64]string{0: ""} // by the length of the file
	for range effort.Times(14, 300) {
		if dice.IntN(4) == 0 {
			r.now += dice.Int64N(4_000_000)
		}
		r.play(chance(dice)...)
		states[r.j.Position()] = r.holdings()
	}
	r.written()
	file, now := r.file(), r.now
	r.close()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.ToUpper(string(whole)), "\r\nPX\r\n") || strings.Contains(string(whole), "PEXPIRE\r\n") {
		t.Error("there is a relative time to live in the journal")
	}
	end := int64(0)
	for n := range len(whole) + 1 {
		if _, ok := states[int64(n)]; ok {
			end = int64(n)
		}
		if err := os.WriteFile(file, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		e := engine.New(engine.Options{Seed: 1})
		j := &Journal{dir: filepath.Join(dir, folder), clock: func() int64 { return now }}
		report, err := j.open(Options{Dir: dir}, e)
		if err != nil {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
		j.file.Close()
		if got := (&rig{e: e, now: now}).holdings(); got != states[end] || report.Cut != int64(n)-end {
			t.Fatalf("the first %d bytes, of which %d are whole units: cut %d, and it is\n%q\nand was\n%q", n, end, report.Cut, got, states[end])
		}
		if left, _ := os.Stat(file); left.Size() != end {
			t.Fatalf("the first %d bytes: %d are left", n, left.Size())
		}
	}
}

// A byte that was changed anywhere is refused, with nothing changed and a position that is not behind it, unless it makes another journal
// that can be read; and what was acknowledged behind it is never cut off.
func TestDamageAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	for _, command := range []string{"SET a 1 EX 100", "RPUSH l a b c", "MULTI", "SET b 2", "INCR n", "EXEC", "HSET h f v", "SET c 3"} {
		r.play(strings.Fields(command)...)
	}
	before := r.j.Position()
	r.play("SET", "last", "x")
	r.written()
	file := r.file()
	r.close()
	whole, _ := os.ReadFile(file)
	refused := 0
	for at := range whole {
		for _, to := range []byte{whole[at] ^ 1, '9', '*'} {
			if to == whole[at] {
				continue
			}
			damaged := slices.Clone(whole)
			damaged[at] = to
			os.WriteFile(file, damaged, 0o644)
			j := &Journal{dir: filepath.Join(dir, folder), clock: func() int64 { return start }}
			report, err := j.open(Options{Dir: dir}, engine.New(engine.Options{}))
			if err == nil {
				j.file.Close()
				if report.Cut > 0 && int64(at) < before {
					t.Errorf("byte %d as %q: %d bytes were cut off", at, to, report.Cut)
				}
				continue
			}
			refused++
			var d *Damaged
			if !errors.As(err, &d) || d.File != file || d.At > int64(at)+60 {
				t.Errorf("byte %d as %q: %v", at, to, err)
			}
			if now, _ := os.ReadFile(file); string(now) != string(damaged) {
				t.Errorf("byte %d as %q: the file was changed", at, to)
			}
		}
	}
	if refused < len(whole)/2 {
		t.Errorf("of %d bytes only %d changes were refused", len(whole), refused)
	}
}

func TestZerosAtTheEndAreATornTail(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir}, start)
	r.play("SET", "a", "1")
	file := r.file()
	r.close()
	f, _ := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	f.Write(make([]byte, 5000))
	f.Close()
	r = newRig(t, Options{Dir: dir}, start)
	defer r.close()
	if r.report.Cut != 5000 || r.report.CutFile != file || r.play("GET", "a") != "$1\r\n1" {
		t.Errorf("%+v, a is %q", r.report, r.play("GET", "a"))
	}
}

// Time goes on while nobody runs: what ended meanwhile is gone at the start, and nothing else; also when the clock was set back.
func TestTimeGoesOnWhileNobodyRuns(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir}, start)
	r.play("SET", "short", "v", "PX", "1000")
	r.play("SET", "long", "v", "PX", "100000")
	r.play("SET", "forever", "v")
	r.play("HSET", "h", "f", "1", "g", "2")
	r.play("HPEXPIRE", "h", "1000", "FIELDS", "1", "f")
	r.close()

	r = newRig(t, Options{Dir: dir}, start-3600e6)
	if r.report.Keys != 4 || r.report.Ended != 0 {
		t.Errorf("with the clock an hour back: %+v", r.report)
	}
	r.close()
	r = newRig(t, Options{Dir: dir}, start+50e6)
	if r.report.Keys != 3 || r.report.Ended != 1 || r.play("DBSIZE") != ":3" || r.play("HLEN", "h") != ":1" {
		t.Errorf("after 50 s: %+v, %s keys, %s fields", r.report, r.play("DBSIZE"), r.play("HLEN", "h"))
	}
	if got, want := r.play("PEXPIRETIME", "long"), ":"+strconv.Itoa(start/1000+100000); got != want {
		t.Errorf("long ends at %s, want %s", got, want)
	}
	r.written()
	log, _ := os.ReadFile(r.file())
	if !strings.Contains(string(log), "DEL\r\n$5\r\nshort") || !strings.Contains(string(log), "HDEL\r\n$1\r\nh\r\n$1\r\nf") {
		t.Errorf("what ended is not recorded: %q", log)
	}
	r.close()
}

func TestOneProcessAtATime(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir}, start)
	_, err := tryRig(t, Options{Dir: dir}, start)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("opened twice: %v", err)
	}
	r.close()
	newRig(t, Options{Dir: dir}, start).close()
}

func TestWhatCannotBeOpened(t *testing.T) {
	unnamed := t.TempDir()
	newRig(t, Options{Dir: unnamed}, start).close()
	os.Remove(filepath.Join(unnamed, folder, manifestName))
	old := t.TempDir()
	os.WriteFile(filepath.Join(old, singleName), nil, 0o644)
	missing := t.TempDir()
	newRig(t, Options{Dir: missing}, start).close()
	os.Remove(filepath.Join(missing, folder, baseName(1)))
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o644)
	relative, unknown, stream := t.TempDir(), t.TempDir(), t.TempDir()
	for dir, line := range map[string]string{
		relative: "*3\r\n$6\r\nEXPIRE\r\n$1\r\nk\r\n$1\r\n9\r\n", unknown: "*1\r\n$4\r\nFROB\r\n", stream: "*5\r\n$4\r\nXADD\r\n$1\r\ns\r\n$1\r\n*\r\n$1\r\nf\r\n$1\r\nv\r\n",
	} {
		newRig(t, Options{Dir: dir}, start).close()
		os.WriteFile(filepath.Join(dir, folder, incrName(1)), []byte(line), 0o644)
	}
	for _, test := range []struct {
		o    Options
		says string
	}{
		{Options{}, "Options.Dir must name a directory"},
		{Options{Dir: "x", Fsync: "often"}, `Options.Fsync must be one of always, everysec, no, got "often"`},
		{Options{Dir: unnamed}, "appendonly.aof.manifest, at byte 0: it is missing"},
		{Options{Dir: old}, "start a Redis 7"},
		{Options{Dir: missing}, baseName(1)},
		{Options{Dir: file}, "not a directory"},
		{Options{Dir: relative}, "relative time to live"},
		{Options{Dir: unknown}, `there is no command "FROB"`},
		{Options{Dir: stream}, `there is no command "XADD"`},
	} {
		if _, err := tryRig(t, test.o, start); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test.o, err)
		}
	}
}

// Commands run while the journal is compacted, again and again; what is read in the end is what there was.
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

// keysOf is every key's payload, in the order of keys.
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

// A crash at any moment of a compaction leaves a directory that opens with everything. The directory is copied after every change that the compaction makes
// to it.
func TestACrashWithinACompaction(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	for i := range 200 {
		r.play("SET", strconv.Itoa(i), strings.Repeat("v", 1000))
	}
	r.written()
	r.do(func(int64, *engine.Engine) {}) // nothing runs
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

// full is a file that has no room, as Linux offers it.
func full(t *testing.T) *os.File {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no /dev/full here")
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// When the disk is full, writes are refused in Redis's words and reads go on; what waited for "always" is told that it failed. When there is room again
// writes go on, and nothing of what was recorded is missing.
func TestDiskFull(t *testing.T) {
	for _, policy := range Policies {
		t.Run(policy, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				r := newRig(t, Options{Dir: dir, Fsync: policy}, start)
				r.play("SET", "before", "v")
				if err := r.j.Await(r.j.Position()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * rest)
				synctest.Wait()
				r.j.mu.Lock()
				disk := r.j.file
				r.j.file = full(t)
				r.j.mu.Unlock()

				r.play("SET", "between", "v")
				err := r.j.Await(r.j.Position())
				if (policy == "always") != errors.Is(err, syscall.ENOSPC) {
					t.Errorf("waited for: %v", err)
				}
				time.Sleep(2 * rest)
				synctest.Wait()
				const misconf = "-MISCONF Errors writing to the AOF file: No space left on device"
				for command, want := range map[string]string{
					"SET k v": misconf, "PING": misconf, "EXPIRE before 10": misconf, "EVAL return(redis.call('set','k','v')) 0": misconf + " script: ",
					"GET before": "$1\r\nv", "GET between": "$1\r\nv", "DBSIZE": ":2",
				} {
					if got := r.play(strings.Fields(command)...); !strings.HasPrefix(got, want) {
						t.Errorf("%s: %s", command, got)
					}
				}
				r.play("MULTI")
				if got := r.play("SET", "k", "v"); got != misconf {
					t.Errorf("queued: %s", got)
				}
				if got := r.play("EXEC"); !strings.HasPrefix(got, "-EXECABORT") {
					t.Errorf("EXEC: %s", got)
				}
				if !r.j.Safe(r.j.Position()) {
					t.Error("reads wait for a disk that is full")
				}

				r.j.mu.Lock()
				r.j.file.Close()
				r.j.file = disk
				r.j.mu.Unlock()
				time.Sleep(time.Second)
				synctest.Wait()
				if got := r.play("SET", "after", "v"); got != "+OK" {
					t.Errorf("with room again: %s", got)
				}
				if err := r.j.Await(r.j.Position()); err != nil {
					t.Error(err)
				}
				r.close()
				r = newRig(t, Options{Dir: dir}, start)
				if got := r.play("EXISTS", "before", "between", "after"); got != ":3" {
					t.Errorf("%s of 3 keys", got)
				}
				r.close()
			})
		})
	}
}

// After a sync that failed nobody knows what is in the file: writes are refused until all data stand in a new base.
func TestAFailedSyncIsMendedByANewBase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, Options{Dir: dir, Fsync: "always"}, start)
		r.play("SET", "a", "1")
		synctest.Wait()
		r.j.mu.Lock()
		r.j.fail(syncError{syscall.EIO})
		r.j.mu.Unlock()
		if got := r.play("SET", "b", "1"); got != "-MISCONF Errors writing to the AOF file: Input/output error" {
			t.Errorf("after a failed sync: %s", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := r.play("SET", "c", "1"); got != "+OK" {
			t.Errorf("with a new base: %s", got)
		}
		if err := r.j.Await(r.j.Position()); err != nil {
			t.Error(err)
		}
		if r.j.files.base.seq != 2 {
			t.Errorf("the base is %v", r.j.files.base)
		}
		r.close()
		r = newRig(t, Options{Dir: dir}, start)
		if got := r.play("EXISTS", "a", "c"); got != ":2" {
			t.Errorf("%s of 2 keys", got)
		}
		r.close()
	})
}

// What is written is synced within a second, once, and nothing runs when nothing is written.
func TestEverysec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Options{Dir: t.TempDir()}, start)
		synced := func() int64 {
			synctest.Wait()
			r.j.mu.Lock()
			defer r.j.mu.Unlock()
			return r.j.synced
		}
		for range 3 {
			before := synced()
			r.play("SET", "a", "1")
			if now := synced(); now != before {
				t.Errorf("synced up to %d at once", now)
			}
			time.Sleep(syncEvery)
			if now := synced(); now != r.j.Position() {
				t.Errorf("synced up to %d of %d after a second", now, r.j.Position())
			}
		}
		time.Sleep(1000 * time.Hour)
		if r.j.timer != nil {
			t.Error("a timer goes on")
		}
		r.close()
	})
}

func FuzzManifest(f *testing.F) {
	f.Add("file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i startoffset 7\n")
	f.Add("file \"a b\" seq 2 type h\n#\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseManifest([]byte(text))
		if err != nil || m.base == nil && len(m.incrs) == 0 || strings.ContainsAny(strings.Join(m.names(), ""), " \"'\n\r#") {
			return
		}
		again, err := parseManifest([]byte(m.String()))
		if err != nil || again.String() != m.String() {
			t.Errorf("%q became %q, %v", text, m.String(), err)
		}
	})
}

func FuzzReplay(f *testing.F) {
	f.Add([]byte("*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n$4\r\nEXEC\r\n"))
	f.Add([]byte("#TS:1\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n*1\r\n"))
	dir := f.TempDir()
	os.MkdirAll(filepath.Join(dir, folder), 0o755)
	files := manifest{incrs: []part{{incrName(1), 1, incremental}}}
	if err := (&Journal{dir: filepath.Join(dir, folder)}).name(files); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		os.WriteFile(filepath.Join(dir, folder, incrName(1)), log, 0o644)
		for range 2 { // what was cut once is whole
			j := &Journal{dir: filepath.Join(dir, folder), clock: func() int64 { return start }}
			report, err := j.open(Options{Dir: dir}, engine.New(engine.Options{Seed: 1}))
			if err != nil {
				return
			}
			j.file.Close()
			log = log[:len(log)-int(report.Cut)]
			if left, _ := os.Stat(filepath.Join(dir, folder, incrName(1))); left.Size() != int64(len(log)) {
				t.Fatalf("%d bytes are left, and %d were to be", left.Size(), len(log))
			}
		}
	})
}
