package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/rdb"
)

// replay brings e to the state that the files describe.
func (j *Journal) replay(e *engine.Engine) (report Report, err error) {
	names := j.files.names()
	session := e.NewSession(engine.SessionOptions{Trusted: true, Obeys: true})
	defer e.Drop(session)
	newest, last := j.newest(names), noted(j.lock)
	for i, name := range names {
		r := replayer{e: e, session: session, now: j.clock(), path: filepath.Join(j.dir, name), last: last}
		if err := r.file(i >= newest && (j.files.base == nil || i > 0)); err != nil {
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

// newest returns the index of the newest file with data. Nothing is written to a file before all older ones are complete. But a compaction
// names its file earlier, so after a crash empty files may follow the one that was being written.
func (j *Journal) newest(names []string) int {
	i := len(names) - 1
	for ; i > 0; i-- {
		if info, err := os.Stat(filepath.Join(j.dir, names[i])); err != nil || info.Size() > 0 {
			break
		}
	}
	return i
}

// replayer replays one file.
type replayer struct {
	e       *engine.Engine
	session *engine.Session
	now     int64
	path    string
	last    intent
	size    int64
	end     int64 // of the last whole unit
	cut     int64 // bytes behind it, to be cut off
}

func (r *replayer) damaged(at int64, why error) error { return &Damaged{r.path, at, why} }

// file replays a whole file. The newest may end within a unit.
func (r *replayer) file(newest bool) error {
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
	if err := r.measure(f, start, newest); err != nil {
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
func (r *replayer) measure(f *os.File, start int64, newest bool) error {
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
		case !newest && errors.Is(err, errTorn):
			return r.damaged(before, fmt.Errorf("%w, but it is not the newest file", err))
		case !newest || !isTorn(rest, err, r.last.explains(filepath.Base(r.path), r.size, r.end)):
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
