package journal

import (
	"errors"
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

// holdings is all that the engine holds: a snapshot without its metadata.
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

// chance returns a random write.
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

// written waits until everything recorded is in the file.
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

// A journal cut at any byte opens with the state after the last whole unit, and reports what it cut.
func TestEveryPrefixIsAState(t *testing.T) {
	effort.Alone(t)
	dir := t.TempDir()
	r := newRig(t, Options{Dir: dir, MinCompact: -1}, start)
	dice := rand.New(rand.NewPCG(7, 7))
	states := map[int64]string{0: ""} // by the length of the file
	for range effort.Times(8, 300) {
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
			t.Fatalf("the first %d bytes, with whole units in %d of them: cut %d, and it is\n%q\nand was\n%q", n, end, report.Cut, got, states[end])
		}
		if left, _ := os.Stat(file); left.Size() != end {
			t.Fatalf("the first %d bytes: %d are left", n, left.Size())
		}
	}
}

// A changed byte anywhere is refused, with nothing changed and a reported position at or before it, unless the result is another readable
// journal; and nothing acknowledged behind it is ever cut off.
func TestDamageAtEveryByte(t *testing.T) {
	effort.Alone(t)
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
		for _, to := range []byte{whole[at] ^ 1, '9', '*'}[:effort.Times(1, 3)] {
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

// Time passes while nothing runs: what has expired meanwhile is gone at the start, and nothing else, even if the clock was set back.
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
	r := newRig(t, Options{Dir: unnamed}, start)
	r.play("SET", "a", "1")
	r.close()
	os.Remove(filepath.Join(unnamed, folder, manifestName))
	old := t.TempDir()
	os.WriteFile(filepath.Join(old, singleName), nil, 0o644)
	missing := t.TempDir()
	newRig(t, Options{Dir: missing}, start).close()
	os.Remove(filepath.Join(missing, folder, incrName(1)))
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
		{Options{Dir: missing}, incrName(1)},
		{Options{Dir: file}, "not a directory"},
		{Options{Dir: relative}, "relative time to live"},
		{Options{Dir: unknown}, `unknown command "FROB"`},
		{Options{Dir: stream}, `unknown command "XADD"`},
	} {
		if _, err := tryRig(t, test.o, start); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test.o, err)
		}
	}
}

// A crash while the journal was created leaves a directory that opens, at whichever step.
func TestACrashWithinTheFirstOpening(t *testing.T) {
	for _, left := range [][]string{{}, {incrName(1)}, {incrName(1), asidePrefix + manifestName}} {
		dir := t.TempDir()
		os.Mkdir(filepath.Join(dir, folder), 0o755)
		for _, name := range left {
			os.WriteFile(filepath.Join(dir, folder, name), nil, 0o644)
		}
		r := newRig(t, Options{Dir: dir}, start)
		r.play("SET", "a", "1")
		r.close()
		r = newRig(t, Options{Dir: dir}, start)
		if got := r.play("GET", "a"); got != "$1\r\n1" {
			t.Errorf("%q was there, then a is %q", left, got)
		}
		r.close()
	}
}
