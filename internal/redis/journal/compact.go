package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/rdb"
)

// Compaction: the log only grows, so from time to time all data, as they are at one moment, are written to a new base, and the log continues in
// a new file.
//
//  1. A new increment is created, and the manifest names it as the last.
//  2. Between two commands a snapshot is begun, and effects recorded from there on go to the new increment.
//  3. The snapshot is written, piece by piece, to a temporary file, which is synced and renamed to a base.
//  4. The manifest names this base and the new increment, and nothing else.
//  5. The old files are removed.
//
// After a crash before step 4, the old base and all increments are valid; after a later one, the new base and increment. Files not named by
// the manifest are removed at the next start.

// compaction describes the latest one.
type compaction struct {
	running bool
	stop    bool
	failed  error
}

// Commands run during a compaction and need the same processors. So a compaction takes its snapshot in pieces, which bounds how long a
// command waits for it, writes a few of them at a time, and rests in between.
const (
	pieceSize = 32 << 10
	burst     = 4 * pieceSize
	breather  = time.Millisecond
)

// Begin allows compactions: do runs a function while no command runs.
func (j *Journal) Begin(do func(func(now int64, e *engine.Engine))) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begin = do
	j.changed.Broadcast()
}

// wantsCompaction reports whether enough was written since the last compaction; j.mu is held.
func (j *Journal) wantsCompaction() bool {
	if j.begin == nil || j.compact.running || j.closed || j.cause != nil && !j.unsure {
		return false
	}
	if j.unsure {
		return j.compact.failed == nil
	}
	return j.min > 0 && j.since >= j.min && j.since >= j.base && (j.compact.failed == nil || j.since >= 2*j.min)
}

// Compact compacts the journal in the background. It reports false if that is already in progress.
func (j *Journal) Compact() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.begin == nil || j.compact.running || j.closed {
		return false
	}
	j.startCompaction()
	return true
}

func (j *Journal) startCompaction() {
	j.compact = compaction{running: true}
	j.goroutine.Add(1)
	go func() {
		defer j.goroutine.Done()
		err := j.compactNow()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.compact.running, j.compact.failed = false, err
		if err != nil && j.unsure {
			j.retryLater()
		}
		j.changed.Broadcast()
	}()
}

// stopCompaction ends a running compaction early.
func (j *Journal) stopCompaction() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.compact.stop = true
	for j.compact.running {
		j.changed.Wait()
	}
	j.begin = nil
}

var errStopped = errors.New("the journal was closed")

func (j *Journal) stopped() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.compact.stop
}

func (j *Journal) compactNow() error {
	j.mu.Lock()
	with, do, next := j.files, j.begin, (*os.File)(nil)
	if j.unsure {
		next = j.next // of an attempt that failed; nobody writes to it before one succeeds
	}
	j.mu.Unlock()

	// 1
	if next == nil {
		var err error
		if next, with, err = j.nameNext(with); err != nil {
			return err
		}
	}
	seq := with.lastSeq()

	// 2
	var snapshot *engine.Snapshot
	do(func(_ int64, e *engine.Engine) {
		snapshot = e.Snapshot()
		j.stream.Reselect()
		j.mu.Lock()
		if j.next != nil && j.next != next { // left by a failed compaction. Nothing was written to it, and nothing will be.
			j.next.Close()
		}
		j.files, j.next, j.nextAt = with, next, j.appended.Load()
		j.changed.Broadcast()
		j.mu.Unlock()
	})
	defer do(func(int64, *engine.Engine) { snapshot.End() })

	// 3
	size, err := j.writeBase(seq, do, breather, snapshot)
	if err != nil {
		return err
	}

	//  4. What was recorded before the snapshot is not needed any more, whether written or not.
	kept := manifest{base: &part{baseName(seq), seq, baseFile}, incrs: with.incrs[len(with.incrs)-1:]}
	if err := j.name(kept); err != nil {
		return err
	}
	j.mu.Lock()
	j.drop()
	j.files, j.base, j.since = kept, size, 0
	j.mu.Unlock()

	// 5
	for _, name := range with.names() {
		if !slices.Contains(kept.names(), name) {
			os.Remove(filepath.Join(j.dir, name))
		}
	}
	return nil
}

// nameNext adds an empty increment to the files.
func (j *Journal) nameNext(files manifest) (next *os.File, with manifest, err error) {
	seq := files.lastSeq() + 1
	next, err = os.OpenFile(filepath.Join(j.dir, incrName(seq)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		return nil, files, err
	}
	with = files
	with.incrs = append(append([]part(nil), files.incrs...), part{incrName(seq), seq, incremental})
	if err := j.name(with); err != nil {
		return nil, files, errors.Join(err, next.Close())
	}
	return next, with, nil
}

// drop moves to the next file at once, because everything before it is in the base; j.mu is held.
func (j *Journal) drop() {
	for j.writing || j.syncing {
		j.changed.Wait()
	}
	if j.next == nil {
		return
	}
	j.pending = j.pending[j.nextAt-j.wrote:]
	j.wrote = j.nextAt
	j.secured(j.nextAt)
	j.advance()
	if j.cause != nil {
		j.mend()
	}
	j.changed.Broadcast()
}

// writeBase writes a snapshot as the base of this number, and returns its length. It rests between bursts.
func (j *Journal) writeBase(seq int64, do func(func(int64, *engine.Engine)), rest time.Duration, snapshot *engine.Snapshot) (size int64, err error) {
	aside := filepath.Join(j.dir, asidePrefix+baseName(seq))
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(aside)
		}
	}()
	var sum rdb.Sum
	var b []byte
	write := func() error {
		sum.Add(b)
		n, err := f.Write(b)
		size += int64(n)
		b = b[:0]
		return err
	}
	for more := true; more; {
		if j.stopped() {
			return 0, errStopped
		}
		do(func(int64, *engine.Engine) { b, more = snapshot.Next(b, pieceSize) })
		if len(b) >= burst || !more {
			if err := write(); err != nil {
				return 0, err
			}
			time.Sleep(rest)
		}
	}
	b = rdb.AppendEnd(nil, sum)
	if _, err := f.Write(b); err != nil {
		return 0, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return size + int64(len(b)), os.Rename(aside, filepath.Join(j.dir, baseName(seq)))
}

// asidePrefix begins the names of incomplete files.
const asidePrefix = "temp-"

// name writes the manifest.
func (j *Journal) name(m manifest) error {
	aside, name := filepath.Join(j.dir, asidePrefix+manifestName), filepath.Join(j.dir, manifestName)
	f, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	_, err = f.WriteString(m.String())
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = syncDir(j.dir) // for the names of the files that it lists
	}
	if err == nil {
		err = os.Rename(aside, name)
	}
	if err == nil {
		err = syncDir(j.dir)
	}
	if err != nil {
		os.Remove(aside)
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}
