package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/rdb"
)

// Report is what Open found.
type Report struct {
	Keys  int // present now
	Ended int // expired while the journal was closed, and removed

	// What a crash left of a write that was never acknowledged as safe. It was cut off: how many bytes, of which file, at which position.
	Cut     int64
	CutFile string
	CutAt   int64
}

// ErrLocked means that another process has opened the directory.
var ErrLocked = errors.New("another process has it open")

// Damaged is the error of Open for a journal that cannot be read. Nothing was changed.
type Damaged struct {
	File string // its path
	At   int64  // the byte
	Why  error
}

func (d *Damaged) Error() string {
	text := fmt.Sprintf("journal: %s, at byte %d: %v: nothing was changed", d.File, d.At, d.Why)
	if errors.Is(d.Why, errDamaged) || errors.Is(d.Why, errTorn) {
		text += ". Restore the file from a backup; or, to lose all that was written after this position, copy the directory and run " +
			"redis-check-aof --fix on the file"
	}
	return text
}

func (d *Damaged) Unwrap() error { return d.Why }

// Open reads the journal of a directory into e, which must be empty, and records what happens to e from then on. now returns the time in unix
// microseconds.
func Open(o Options, e *engine.Engine, now func() int64) (*Journal, Report, error) {
	var report Report
	if err := o.validate(); err != nil {
		return nil, report, err
	}
	j := &Journal{dir: filepath.Join(o.Dir, folder), clock: now, policy: o.Fsync, min: max(o.MinCompact, 0)}
	j.changed = sync.NewCond(&j.mu)
	j.stream.Write = j.append
	j.always.Store(o.Fsync == "always")
	if err := os.MkdirAll(j.dir, 0o755); err != nil {
		return nil, report, fmt.Errorf("journal: Options.Dir: %w", err)
	}
	var err error
	if j.lock, err = lock(j.dir); err != nil {
		return nil, report, err
	}
	if report, err = j.open(o, e); err != nil {
		j.lock.Close()
		return nil, report, err
	}
	e.SetSink(j)
	e.SetLog(j)
	before := e.Figures(now()).Keys
	e.ReapAll(now())
	report.Keys = e.Figures(now()).Keys
	report.Ended += before - report.Keys
	e.Settled()
	e.RefuseWrites(j.refusal)
	j.goroutine.Add(1)
	go j.run()
	return j, report, nil
}

// refusal is the engine's error reply to writes; empty: they are accepted.
func (j *Journal) refusal() string {
	if text := j.broken.Load(); text != nil {
		return *text
	}
	return ""
}

const lockName = "mayfly.lock"

func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("journal: Options.Dir: %w", err)
	}
	ok, err := tryLock(f)
	switch {
	case err != nil:
		f.Close()
		return nil, fmt.Errorf("journal: lock %s: %w", f.Name(), err)
	case !ok:
		f.Close()
		return nil, fmt.Errorf("journal: %s: %w: stop that process first, or use a directory of its own", dir, ErrLocked)
	}
	return f, nil
}

// open finds the files, reads them, and opens the last one for writing.
func (j *Journal) open(o Options, e *engine.Engine) (report Report, err error) {
	text, err := os.ReadFile(filepath.Join(j.dir, manifestName))
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := j.mustBeNew(o.Dir); err != nil {
			return report, err
		}
		if err := j.create(); err != nil {
			return report, err
		}
	case err != nil:
		return report, fmt.Errorf("journal: %w", err)
	default:
		files, err := parseManifest(text)
		if err != nil {
			return report, &Damaged{filepath.Join(j.dir, manifestName), 0, err}
		}
		j.files = *files
		if err := j.mustNameAll(); err != nil {
			return report, err
		}
		if report, err = j.replay(e); err != nil {
			return report, err
		}
	}
	if len(j.files.incrs) == 0 {
		j.files.incrs = []part{{incrName(1), 1, incremental}}
		if err := j.name(j.files); err != nil {
			return report, err
		}
	}
	last := filepath.Join(j.dir, j.files.incrs[len(j.files.incrs)-1].name)
	if j.file, err = os.OpenFile(last, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
		return report, fmt.Errorf("journal: %w", err)
	}
	if report.Cut > 0 {
		if err := errors.Join(j.file.Truncate(report.CutAt), j.file.Sync()); err != nil {
			j.file.Close()
			return report, fmt.Errorf("journal: cut %s: %w", last, err)
		}
	}
	j.tidy()
	return report, nil
}

// mustBeNew refuses a directory with data that no manifest names: a new journal would hide them.
func (j *Journal) mustBeNew(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, singleName)); err == nil {
		return fmt.Errorf("journal: %s is the file of a Redis before 7: start a Redis 7 or later on the directory once, to convert it to a folder",
			filepath.Join(dir, singleName))
	}
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	for _, entry := range entries {
		if numbered.MatchString(entry.Name()) {
			return &Damaged{filepath.Join(j.dir, manifestName), 0, fmt.Errorf("it is missing, but %s exists", entry.Name())}
		}
	}
	return nil
}

// mustNameAll refuses a manifest that leaves out a file with data, because files that are not named get removed.
func (j *Journal) mustNameAll() error {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	named := j.files.names()
	for _, p := range j.files.old {
		named = append(named, p.name)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !numbered.MatchString(name) || slices.Contains(named, name) {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		if why := j.files.forgets(name, info.Size()); why != "" {
			return &Damaged{filepath.Join(j.dir, manifestName), 0, fmt.Errorf("%s: restore the manifest, or move that file away", why)}
		}
	}
	return nil
}

// create makes the files of an empty journal.
func (j *Journal) create() error {
	b := rdb.AppendHeader(nil, rdb.Plain, "redis-ver", engine.Version, "redis-bits", "64")
	var sum rdb.Sum
	sum.Add(b)
	if err := os.WriteFile(filepath.Join(j.dir, baseName(1)), rdb.AppendEnd(b, sum), 0o644); err != nil {
		return fmt.Errorf("journal: Options.Dir: %w", err)
	}
	if err := os.WriteFile(filepath.Join(j.dir, incrName(1)), nil, 0o644); err != nil {
		return fmt.Errorf("journal: Options.Dir: %w", err)
	}
	j.files = manifest{base: &part{baseName(1), 1, baseFile}, incrs: []part{{incrName(1), 1, incremental}}}
	return j.name(j.files)
}

// numbered matches the names of data files.
var numbered = regexp.MustCompile(`^appendonly\.aof\.[0-9]+\.(base\.rdb|base\.aof|incr\.aof)$`)

// tidy removes what a crash during a compaction left behind, and what Redis marked for removal.
func (j *Journal) tidy() {
	names := j.files.names()
	entries, _ := os.ReadDir(j.dir)
	for _, entry := range entries {
		name := entry.Name()
		aside, is := strings.CutPrefix(name, asidePrefix)
		if is && (numbered.MatchString(aside) || aside == manifestName) || numbered.MatchString(name) && !slices.Contains(names, name) {
			os.Remove(filepath.Join(j.dir, name))
		}
	}
	for _, p := range j.files.old {
		os.Remove(filepath.Join(j.dir, p.name))
	}
	j.files.old = nil
}

// replay brings e to the state that the files describe.
func (j *Journal) replay(e *engine.Engine) (report Report, err error) {
	names := j.files.names()
	session := e.NewSession(engine.SessionOptions{Trusted: true, Obeys: true})
	defer e.Drop(session)
	for i, name := range names {
		r := replayer{e: e, session: session, now: j.clock(), path: filepath.Join(j.dir, name)}
		if err := r.file(i == len(names)-1 && (j.files.base == nil || i > 0)); err != nil {
			return report, err
		}
		if j.files.base != nil && i == 0 {
			j.base = r.size
		} else {
			j.since += r.size
		}
		if r.cut > 0 {
			report.Cut, report.CutAt, report.CutFile = r.cut, r.end, r.path
		}
	}
	return report, nil
}

// replayer replays one file.
type replayer struct {
	e       *engine.Engine
	session *engine.Session
	now     int64
	path    string
	size    int64
	end     int64 // of the last whole unit
	cut     int64 // bytes behind it, to be cut off
}

func (r *replayer) damaged(at int64, why error) error { return &Damaged{r.path, at, why} }

// file replays a whole file. The last file may end within a unit.
func (r *replayer) file(last bool) error {
	f, err := os.Open(r.path)
	if err != nil {
		return r.damaged(0, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return r.damaged(0, err)
	}
	r.size = info.Size()
	start, err := r.preamble(f)
	if err != nil {
		return err
	}
	if err := r.measure(f, start, last); err != nil {
		return err
	}
	return r.obey(f, start)
}

// preamble reads an RDB file, if f begins with one, and returns where it ends.
func (r *replayer) preamble(f *os.File) (int64, error) {
	head := make([]byte, 5)
	if n, err := io.ReadFull(f, head); err != nil || !bytes.Equal(head[:n], []byte("REDIS")) {
		return 0, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, r.damaged(0, err)
	}
	file := rdb.NewFile(f)
	_, err := r.e.Load(r.now, file, true)
	if err != nil {
		return 0, r.damaged(file.Offset(), err)
	}
	return file.Offset(), nil
}

// measure finds the end of the last whole unit. It refuses damaged files before any command is run.
func (r *replayer) measure(f *os.File, start int64, last bool) error {
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return r.damaged(start, err)
	}
	s := scanner{src: f, offset: start}
	r.end = start
	for inside := false; ; {
		before := s.offset
		args, err := s.next()
		switch {
		case err == io.EOF && !inside:
			r.end = s.offset
			return nil
		case err == io.EOF:
			err = errTorn
		case err == nil && !engine.Knows(args):
			return r.damaged(before, fmt.Errorf("%w: unknown command %.40q with %d arguments", errDamaged, args[0], len(args)-1))
		case err == nil && isWord(args[0], "MULTI"):
			if inside {
				return r.damaged(before, fmt.Errorf("%w: a transaction begins inside another", errDamaged))
			}
			inside, r.end = true, before
			continue
		case err == nil && isWord(args[0], "EXEC"):
			if !inside {
				return r.damaged(before, fmt.Errorf("%w: a transaction ends without having begun", errDamaged))
			}
			inside = false
			fallthrough
		case err == nil:
			if !inside {
				r.end = s.offset
			}
			continue
		}
		rest, readErr := s.tail()
		switch {
		case readErr != nil:
			return r.damaged(before, readErr)
		case !last && errors.Is(err, errTorn):
			return r.damaged(before, fmt.Errorf("%w, but it is not the newest file", err))
		case !last || !isTorn(rest, err):
			return r.damaged(before, err)
		}
		r.cut = r.size - r.end
		return nil
	}
}

func isWord(b []byte, word string) bool {
	return len(b) == len(word) && bytes.EqualFold(b, []byte(word))
}

// obey has the engine run the commands between start and the end.
func (r *replayer) obey(f *os.File, start int64) error {
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return r.damaged(start, err)
	}
	s := scanner{src: io.LimitReader(f, r.end-start), offset: start}
	for {
		before := s.offset
		args, err := s.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return r.damaged(before, err)
		}
		if err := r.e.Obey(r.now, r.session, args); err != nil {
			return r.damaged(before, fmt.Errorf("the command %.40q: %w", args[0], err))
		}
	}
}
