// Package journal keeps an engine's data on disk, in Redis's own format: an append-only log of effects in several files. A real Redis started
// on the directory has the same data, and the other way round.
//
//	j, report, err := journal.Open(journal.Options{Dir: dir}, e, now) // loads the data into e and records its writes
//	s, err := server.New(e, server.Options{Keeper: j})                // replies wait until the writes they report are safe
//	j.Begin(s.Do)                                                     // compacts from time to time
//	...
//	s.Close(ctx)
//	j.Close()
//
// # How a write gets to disk
//
//	engine, under the server's lock   Effect, End: a whole unit, as bytes      Stream.Write
//	                                  is appended to what is pending           append
//	the writer, a goroutine           writes what is pending, and syncs it     run
//	the connection, without the lock  waits if it must, and replies            Await
//
// With "always" a reply waits for the sync that covers it, so one sync serves all connections that wait. Otherwise replies do not wait,
// unless the disk is more than a second behind.
package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
)

// Policies say when writes are synced, so that they survive a crash of the machine, as Redis's appendfsync does.
var Policies = []string{"always", "everysec", "no"}

// Options set up a journal.
type Options struct {
	Dir        string // created if missing
	Fsync      string // one of Policies; empty: everysec
	MinCompact int64  // compact after this many bytes, and at least as many as the last compaction left; 0: 64 MiB; negative: never
}

func (o *Options) validate() error {
	if o.Fsync == "" {
		o.Fsync = "everysec"
	}
	if o.MinCompact == 0 {
		o.MinCompact = 64 << 20
	}
	switch {
	case o.Dir == "":
		return errors.New("journal: Options.Dir must name a directory")
	case !slices.Contains(Policies, o.Fsync):
		return fmt.Errorf("journal: Options.Fsync must be one of %s, got %q", strings.Join(Policies, ", "), o.Fsync)
	}
	return nil
}

const (
	syncEvery  = time.Second
	retryEvery = 100 * time.Millisecond // after a failed write
	rest       = time.Millisecond       // between two writes when no reply waits, so that one write takes all that comes meanwhile
	maxPending = 64 << 20               // bytes; beyond this, commands wait
)

// Journal is an open journal. Its methods are safe for concurrent use, except those of a Sink, which the engine calls.
type Journal struct {
	dir    string // of the files
	lock   *os.File
	stream engine.Stream
	clock  func() int64

	appended atomic.Int64 // bytes recorded since it was opened: the position
	safe     atomic.Int64 // up to this position bytes are on the disk, or need not be
	held     atomic.Bool  // the disk is behind: Await waits
	always   atomic.Bool
	broken   atomic.Pointer[string] // why writes are refused, in Redis's words; nil: they are accepted

	mu        sync.Mutex // guards the fields below
	changed   *sync.Cond // signals a change that goroutines wait for
	policy    string
	pending   []byte // not yet taken by the writer; it ends at position appended
	spare     []byte
	writing   bool  // the writer is writing what it took
	wrote     int64 // position up to which bytes are written
	syncing   bool
	due       bool // a sync is overdue
	timer     *time.Timer
	cause     error // the error of the last write or sync
	unsure    bool  // a sync failed: the contents of the file are unknown
	closed    bool
	file      *os.File
	size      int64 // of file
	whole     int64 // up to here it has whole units
	next      *os.File
	nextAt    int64 // the position where next begins, if there is one
	files     manifest
	base      int64 // bytes of all files at the last compaction
	since     int64 // bytes written since then
	min       int64
	begin     func(func(now int64, e *engine.Engine))
	compact   compaction
	goroutine sync.WaitGroup
}

// Effect and End make a Journal the engine's Sink.

// Effect receives one effect of a write.
func (j *Journal) Effect(db int, args [][]byte) { j.stream.Effect(db, args) }

// End says that the effects since the last End are complete.
func (j *Journal) End() { j.stream.End() }

// append records a unit.
func (j *Journal) append(unit []byte) {
	j.mu.Lock()
	if len(j.pending) == 0 && !j.writing {
		j.changed.Broadcast() // wakes the writer
	}
	j.pending = append(j.pending, unit...)
	if len(j.pending) > maxPending {
		j.held.Store(true)
	}
	j.appended.Add(int64(len(unit)))
	j.mu.Unlock()
}

// Position returns the position after everything recorded so far.
func (j *Journal) Position() int64 { return j.appended.Load() }

// Safe reports whether a reply about writes up to a position need not wait. With a broken journal no reply waits here: Await returns an error
// to those about writes.
func (j *Journal) Safe(position int64) bool {
	return j.broken.Load() != nil || !j.always.Load() || j.safe.Load() >= position
}

// Await waits until a reply about writes up to a position may be sent, and until the disk is not far behind. An error says that this will
// never be: the writes may be lost, and no reply may say that they were done.
func (j *Journal) Await(position int64) error {
	if j.Safe(position) && j.broken.Load() == nil && !j.held.Load() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.broken.Load() == nil && (!j.Safe(position) || j.held.Load()) && !j.closed {
		j.changed.Wait()
	}
	if j.always.Load() && j.safe.Load() < position {
		return fmt.Errorf("journal: %w", j.cause)
	}
	return nil
}

// run is the writer: it writes what is pending, until the journal is closed.
func (j *Journal) run() {
	defer j.goroutine.Done()
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		switch {
		case len(j.pending) > 0 && j.cause == nil:
			j.write()
			if j.policy != "always" && !j.closed {
				j.mu.Unlock()
				time.Sleep(rest)
				j.mu.Lock()
			}
		case j.next != nil && j.wrote >= j.nextAt && j.cause == nil:
			j.turn()
		case j.closed:
			return
		case j.wantsCompaction():
			j.startCompaction()
		default:
			j.changed.Wait()
		}
	}
}

// write takes what is pending and writes it, up to where the next file begins; j.mu is held, but released while writing.
func (j *Journal) write() {
	take := len(j.pending)
	if j.next != nil {
		take = min(take, int(j.nextAt-j.wrote))
		if take == 0 {
			j.turn()
			return
		}
	}
	b := j.pending[:take]
	j.pending = append(j.spare[:0], j.pending[take:]...)
	j.spare = nil // it is what is pending now; if b is too large to be kept, there is none
	j.writing = true
	file, always := j.file, j.policy == "always"
	about := intent{filepath.Base(file.Name()), j.whole, j.size + int64(take)}
	j.mu.Unlock()
	about.note(j.lock)
	n, err := file.Write(b)
	synced := false
	if err == nil && always {
		if err = file.Sync(); err == nil {
			synced = true
		} else {
			err = syncError{err}
		}
	}
	j.mu.Lock()
	j.writing = false
	j.size += int64(n)
	j.since += int64(n)
	j.wrote += int64(n)
	if n < len(b) {
		j.pending = append(b[n:len(b):len(b)], j.pending...)
	} else if j.whole = j.size; cap(b) <= 4<<20 {
		j.spare = b[:0]
	}
	switch {
	case err != nil:
		j.fail(err)
	case synced:
		j.secured(j.wrote)
	default:
		j.arm()
	}
	j.release()
	j.changed.Broadcast()
}

// turn moves to the next file, once everything before it is written and synced; j.mu is held, but released while syncing.
func (j *Journal) turn() {
	old := j.file
	j.writing = true
	j.mu.Unlock()
	err := old.Sync() // with any policy: a crash of the machine must not leave a gap before the next file
	j.mu.Lock()
	for j.syncing {
		j.changed.Wait()
	}
	j.writing = false
	j.changed.Broadcast()
	if err != nil {
		j.fail(syncError{err})
		return
	}
	j.secured(j.wrote)
	if j.wrote >= j.nextAt { // otherwise another compaction has begun meanwhile
		j.advance()
	}
}

// advance moves to the next file; j.mu is held.
func (j *Journal) advance() {
	j.file.Close()
	j.file, j.size, j.whole, j.next = j.next, 0, 0, nil
}

// release lets replies and writes continue once the disk has caught up; j.mu is held.
func (j *Journal) release() {
	if j.cause == nil && len(j.pending) <= maxPending/2 {
		if j.broken.Load() != nil {
			j.mend()
		}
		if !j.syncing || !j.due {
			j.held.Store(false)
		}
	}
}

// arm makes sure of a sync within a second; j.mu is held.
func (j *Journal) arm() {
	if j.policy != "everysec" || j.timer != nil || j.safe.Load() >= j.wrote || j.closed {
		return
	}
	j.goroutine.Add(1)
	j.timer = time.AfterFunc(syncEvery, func() {
		defer j.goroutine.Done()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.timer = nil
		if j.syncing { // the last sync takes more than a second: replies wait for it
			j.due = true
			j.held.Store(true)
			return
		}
		j.sync()
	})
}

// sync makes everything written safe; j.mu is held, but released meanwhile.
func (j *Journal) sync() {
	if j.safe.Load() >= j.wrote || j.unsure {
		return
	}
	file, upTo := j.file, j.wrote
	j.syncing = true
	j.mu.Unlock()
	err := file.Sync()
	j.mu.Lock()
	j.syncing = false
	if err != nil && !errors.Is(err, os.ErrClosed) {
		j.fail(syncError{err})
	} else {
		j.secured(upTo)
	}
	if j.due {
		j.due = false
		j.held.Store(false)
	}
	j.arm()
	j.changed.Broadcast()
}

// secured records that replies about writes up to a position need not wait; j.mu is held.
func (j *Journal) secured(upTo int64) { j.safe.Store(max(j.safe.Load(), upTo)) }

// SetFsync changes the policy, which must be one of Policies.
func (j *Journal) SetFsync(policy string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.policy = policy
	for policy == "always" && (j.syncing || j.writing) { // what is being written began under the old policy
		j.changed.Wait()
	}
	if policy == "always" {
		j.sync()
	}
	j.always.Store(policy == "always")
	j.arm()
}

// Close writes and syncs what is pending and unlocks the directory. An error says that some of it is lost.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.mu.Unlock()
	j.stopCompaction()
	j.mu.Lock()
	if j.cause != nil && !j.unsure {
		j.cause = nil // try once more
	}
	j.closed = true
	if j.timer != nil && j.timer.Stop() {
		j.timer = nil
		j.goroutine.Done()
	}
	j.changed.Broadcast()
	j.mu.Unlock()
	j.goroutine.Wait()
	err := j.cause
	if err == nil {
		err = j.file.Sync()
	}
	if len(j.pending) > 0 && err != nil {
		err = fmt.Errorf("journal: the last %d bytes were not written to %s: %w", len(j.pending), j.dir, err)
	} else if err != nil {
		err = fmt.Errorf("journal: %s: %w", j.dir, err)
	}
	return errors.Join(err, j.file.Close(), j.lock.Close())
}

// Dir returns the directory given to Open.
func (j *Journal) Dir() string { return filepath.Dir(j.dir) }

// Fsync returns the policy.
func (j *Journal) Fsync() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.policy
}

// State describes the journal for INFO.
func (j *Journal) State() engine.LogState {
	j.mu.Lock()
	defer j.mu.Unlock()
	return engine.LogState{
		Size: j.base + j.since, Base: j.base, Compacting: j.compact.running, CompactError: j.compact.failed, WriteError: j.cause,
	}
}
