package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mayflycache/mayfly/internal/redis/engine"
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
		if err := cut(report.CutFile, report.CutAt); err != nil {
			j.file.Close()
			return report, fmt.Errorf("journal: cut %s: %w", report.CutFile, err)
		}
	}
	if info, err := j.file.Stat(); err == nil {
		j.size, j.whole = info.Size(), info.Size()
	}
	j.tidy()
	return report, nil
}

func cut(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(at), f.Sync(), f.Close())
}

// mustBeNew refuses a directory with data that no manifest names: a new journal would hide them. Files without data may be left by a crash
// while the journal was created.
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
		info, err := entry.Info()
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		if numbered.MatchString(entry.Name()) && info.Size() > 0 {
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

// create makes the files of an empty journal. Until there is a manifest it makes only an empty one, see mustBeNew.
func (j *Journal) create() error {
	if err := os.WriteFile(filepath.Join(j.dir, incrName(1)), nil, 0o644); err != nil {
		return fmt.Errorf("journal: Options.Dir: %w", err)
	}
	above := filepath.Dir(j.dir)
	syncDir(filepath.Dir(above)) // for above, if Open has just made it; it may belong to somebody else
	if err := syncDir(above); err != nil {
		return fmt.Errorf("journal: Options.Dir: %w", err)
	}
	j.files = manifest{incrs: []part{{incrName(1), 1, incremental}}}
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
