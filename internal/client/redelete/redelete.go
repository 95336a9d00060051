// Package redelete remembers removals that Redis did not do, and repeats them when Redis is back. Until then, nothing that Redis holds under
// those keys may be served.
package redelete

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly/internal/client/background"
)

// Every is how often removals are tried again: no more often than a breaker would let them through.
const Every = 500 * time.Millisecond

// Options say how failed removals are repeated.
type Options struct {
	// Limit is how many keys are remembered.
	Limit int

	// Works runs the goroutine that repeats them. When Works is closed, they are tried once more.
	Works *background.Group

	// Again removes keys. It returns those it has removed, and why it has not removed the others.
	Again func(ctx context.Context, keys []string) (done []string, err error)

	// Dropped is told that n keys were forgotten although they were not removed.
	Dropped func(ctx context.Context, n int, why error)
}

// Queue holds keys whose removal failed. It is safe for concurrent use.
type Queue struct {
	opt Options
	n   atomic.Int64 // number of keys, for readers in the usual case that there are none

	mu      sync.Mutex        // guards the rest
	keys    map[string]uint64 // the number of each key's last failure
	failure uint64
	running bool // a goroutine repeats the removals
}

// New returns an empty queue.
func New(o Options) *Queue { return &Queue{opt: o, keys: make(map[string]uint64)} }

// Any reports whether any key is queued.
func (q *Queue) Any() bool { return q.n.Load() != 0 }

// Len returns how many keys are queued. After Works was closed these are the ones that were not removed.
func (q *Queue) Len() int { return int(q.n.Load()) }

// Has reports whether key is queued.
func (q *Queue) Has(key string) bool {
	if !q.Any() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.keys[key]
	return ok
}

// Find reports whether match accepts any queued key. match must not use the queue.
func (q *Queue) Find(match func(key string) bool) bool {
	if !q.Any() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.keys {
		if match(key) {
			return true
		}
	}
	return false
}

// Add takes keys whose removal failed, and makes sure that they are removed. It returns how many will not be, because there is no room for
// them or the queue is closed; Dropped is told of them.
func (q *Queue) Add(ctx context.Context, why error, keys ...string) (dropped int) {
	dropped, idle := q.add(keys)
	if idle && !q.opt.Works.Start(q.settle) {
		q.stop()
		dropped = len(keys)
	}
	if dropped > 0 {
		q.opt.Dropped(ctx, dropped, why)
	}
	return dropped
}

func (q *Queue) add(keys []string) (dropped int, idle bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, key := range keys {
		if _, known := q.keys[key]; !known && len(q.keys) >= q.opt.Limit {
			dropped++
			continue
		}
		q.failure++
		q.keys[key] = q.failure
	}
	q.n.Store(int64(len(q.keys)))
	idle = len(q.keys) > 0 && !q.running
	q.running = q.running || idle
	return dropped, idle
}

// Mark returns the number of the last failure. A removal that begins now and succeeds takes out only keys that failed up to that number: a
// removal that failed in the meantime may have been the later one.
func (q *Queue) Mark() (until uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failure
}

// Remove takes out keys that have been removed after all, by a removal that began at the mark until.
func (q *Queue) Remove(until uint64, keys ...string) {
	if !q.Any() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removeLocked(keys, until)
}

func (q *Queue) removeLocked(keys []string, until uint64) {
	for _, key := range keys {
		if q.keys[key] <= until {
			delete(q.keys, key)
		}
	}
	q.n.Store(int64(len(q.keys)))
}

// settle tries again until nothing is left. When Works is closed it tries once more.
func (q *Queue) settle() {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	ctx := q.opt.Works.Context()
	some := most
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-q.opt.Works.Closing():
			last = true
		}
		over, err := q.again(ctx, &some)
		if over {
			return
		}
		if last {
			q.opt.Dropped(ctx, q.stop(), err)
		}
	}
}

// most is how many keys are removed at a time. What Redis does not remove of thousands within its time it may well remove of a few.
const most = 512

// again tries each key once, some at a time: half as many as last time if Redis removed none of those, twice as many if it removed all. It gives up
// when Redis has removed nothing yet, or nothing any more. It reports whether no key is left; then settle must end.
func (q *Queue) again(ctx context.Context, some *int) (over bool, err error) {
	keys, until := q.list()
	removed, tooMany, inARow := false, false, 0
	for len(keys) > 0 {
		n := min(*some, len(keys))
		done, why := q.opt.Again(ctx, keys[:n])
		if q.settled(done, until) {
			return true, nil
		}
		if why != nil {
			err = why
		}
		if len(done) == 0 {
			*some, tooMany = max(n/2, 1), true
			if inARow++; !removed || inARow > 10 { // from most down to one and the next
				return false, err
			}
			if n == 1 {
				keys = keys[1:]
			}
			continue
		}
		if removed, inARow = true, 0; len(done) == n && !tooMany {
			*some = min(*some*2, most)
		}
		keys = keys[n:]
	}
	return false, err
}

// list returns the keys, and the number of the last failure among them.
func (q *Queue) list() (keys []string, until uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Keys(q.keys)), q.failure
}

// settled takes out keys that have been removed, except those that failed again after list. It reports whether none are left.
func (q *Queue) settled(keys []string, until uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.removeLocked(keys, until)
	q.running = len(q.keys) > 0
	return !q.running
}

// stop says that nobody settles any more, and returns how many keys are left.
func (q *Queue) stop() (left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = false
	return len(q.keys)
}
