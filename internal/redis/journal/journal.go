// Package journal keeps an engine's data on disk, in Redis's own form: an append-only log of effects in several files. A real Redis started
// on the directory holds the same data, and the other way round.
//
//	j, report, err := journal.Open(journal.Options{Dir: dir}, e, now) // e holds what was there, and its writes are recorded
//	s, err := server.New(e, server.Options{Keeper: j})                // replies wait until what they tell is safe
//	j.Begin(s.Do)                                                     // it is compacted from time to time
//	...
//	s.Close(ctx)
//	j.Close()
//
// # The way of a write
//
//	engine, under the server's lock   Effect, End: a whole unit, as bytes      Stream.Write
//	                                  is appended to what is pending           append
//	the writer, a goroutine           writes what is pending, and syncs it     run
//	the connection, without the lock  waits, if it must, and replies           Await
//
// With "always" a reply waits for the sync that covers it, and so one sync serves all connections that wait. Otherwise nobody waits, unless
// the disk is more than a second behind.
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

// Policies say when what was written is made to outlast a crash of the machine, as Redis's appendfsync does.
var Policies = []string{"always", "everysec", "no"}

// Options set up a journal.
type Options struct {
	Dir        string // is made if it is missing
	Fsync      string // one of Policies; empty: everysec
	MinCompact int64  // bytes that must be written since the last compaction, and as many as that had, for the next; 0: 64 MiB; negative: never
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
	retryEvery = 100 * time.Millisecond // a write that failed
	rest       = time.Millisecond       // of the writer, when nobody waits for it: what comes meanwhile is written at once
	maxPending = 64 << 20               // bytes that wait to be written before commands do
)

// Journal is an open journal. Its methods are safe for concurrent use, but for those of a Sink, which the engine calls.
type Journal struct {
	dir    string // that of the files
	lock   *os.File
	stream engine.Stream
	clock  func() int64

	appended atomic.Int64 // bytes recorded since it was opened: the position
	safe     atomic.Int64 // up to which position they are as safe as the policy wants
	held     atomic.Bool  // the disk is behind: Await waits
	always   atomic.Bool
	broken   atomic.Pointer[string] // why writes are refused, in Redis's words; nil: they are not

	mu        sync.Mutex // guards what follows
	changed   *sync.Cond // something of it that somebody waits for
	policy    string
	pending   []byte // to be written; of the bytes before position appended
	spare     []byte
	writing   bool  // the writer has taken what was pending
	wrote     int64 // position up to which it was written
	synced    int64
	syncing   bool
	due       bool // a sync is due
	timer     *time.Timer
	cause     error // why the last write or sync failed
	unsure    bool  // a sync failed: what is in the file now nobody knows
	closed    bool
	file      *os.File
	size      int64 // of file
	next      *os.File
	nextAt    int64 // the position from which on next, if there is one, is written
	files     manifest
	base      int64 // bytes of all files at the last compaction
	since     int64 // bytes written since
	min       int64
	begin     func(func(now int64, e *engine.Engine))
	compact   compaction
	goroutine sync.WaitGroup
}

// Effect and End make a Journal the engine's Sink.

// Effect is told an effect of a write.
func (j *Journal) Effect(db int, args [][]byte) { j.stream.Effect(db, args) }

// End is told that what came since the last End is complete.
func (j *Journal) End() { j.stream.End() }

// append records a unit.
func (j *Journal) append(unit []byte) {
	j.mu.Lock()
	if len(j.pending) == 0 && !j.writing {
		j.changed.Broadcast() // the writer sleeps
	}
	j.pending = append(j.pending, unit...)
	if len(j.pending) > maxPending {
		j.held.Store(true)
	}
	j.appended.Add(int64(len(unit)))
	j.mu.Unlock()
}

// Position returns the position behind all that was recorded so far.
func (j *Journal) Position() int64 { return j.appended.Load() }

// Safe reports whether a reply that tells of what was recorded up to a position need not wait. When the journal is broken none need: those
// who wrote are told by Await.
func (j *Journal) Safe(position int64) bool {
	return j.broken.Load() != nil || !j.always.Load() || j.safe.Load() >= position
}

// Await waits until a reply that tells of what was recorded up to a position may go out, and until the disk is not far behind. The error says
// that this can never be: what was recorded may be lost, and nobody must be told that it was done.
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

// write takes what is pending and writes it, up to where another file begins; j.mu is held, but while it writes.
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
	j.writing = true
	file, always := j.file, j.policy == "always"
	j.mu.Unlock()
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
	} else if cap(b) <= 4<<20 {
		j.spare = b[:0]
	}
	switch {
	case err != nil:
		j.fail(err)
	case synced:
		j.synced = j.wrote
		j.safe.Store(j.wrote)
	default:
		j.arm()
	}
	j.release()
	j.changed.Broadcast()
}

// turn goes on with the next file, when all before it was written; j.mu is held, but while it syncs.
func (j *Journal) turn() {
	old, sync := j.file, j.policy != "no"
	j.writing = true
	j.mu.Unlock()
	var err error
	if sync {
		err = old.Sync()
	}
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
	j.synced = max(j.synced, j.wrote)
	if j.wrote >= j.nextAt { // else another compaction was begun meanwhile
		j.advance()
	}
}

// advance goes on with the next file; j.mu is held.
func (j *Journal) advance() {
	j.file.Close()
	j.file, j.size, j.next = j.next, 0, nil
}

// release lets those go on whom the disk held up, and writes, once it has caught up; j.mu is held.
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

// arm sees to a sync within a second; j.mu is held.
func (j *Journal) arm() {
	if j.policy != "everysec" || j.timer != nil || j.synced >= j.wrote || j.closed {
		return
	}
	j.goroutine.Add(1)
	j.timer = time.AfterFunc(syncEvery, func() {
		defer j.goroutine.Done()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.timer = nil
		if j.syncing { // the one before takes more than a second: commands wait for it
			j.due = true
			j.held.Store(true)
			return
		}
		j.sync()
	})
}

// sync makes what was written safe; j.mu is held, but meanwhile.
func (j *Journal) sync() {
	if j.synced >= j.wrote || j.unsure {
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
		j.synced = max(j.synced, upTo)
		j.safe.Store(j.synced)
	}
	if j.due {
		j.due = false
		j.held.Store(false)
	}
	j.arm()
	j.changed.Broadcast()
}

// SetFsync changes the policy, which must be one of Policies.
func (j *Journal) SetFsync(policy string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.policy = policy
	for policy == "always" && j.syncing {
		j.changed.Wait()
	}
	if policy == "always" {
		j.sync()
	}
	j.always.Store(policy == "always")
	j.arm()
}

// Close writes and syncs what is pending and gives the directory back. The error says that some of it is lost.
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
		j.cause = nil // once more
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

// Dir returns the directory that was opened.
func (j *Journal) Dir() string { return filepath.Dir(j.dir) }

// Fsync returns the policy.
func (j *Journal) Fsync() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.policy
}

// State says how the journal is.
func (j *Journal) State() engine.LogState {
	j.mu.Lock()
	defer j.mu.Unlock()
	return engine.LogState{
		Size: j.base + j.since, Base: j.base, Compacting: j.compact.running, CompactError: j.compact.failed, WriteError: j.cause,
	}
}
