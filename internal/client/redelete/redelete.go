// Package redelete remembers the removals that Redis did not do, and does them when it is back. Until then what Redis holds under
// those keys is not to be served.
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

// Every is how often what is in doubt is tried again: no oftener than a breaker would let it.
const Every = 500 * time.Millisecond

// Options say how doubts are settled.
type Options struct {
	// Limit is how many keys are remembered.
	Limit int

	// Works runs what settles them. When it is closed they are tried once more.
	Works *background.Group

	// Again removes keys, and returns those that it has, and why it has not the others.
	Again func(ctx context.Context, keys []string) (done []string, err error)

	// Dropped is told of n keys that are forgotten though they have not been removed.
	Dropped func(ctx context.Context, n int, why error)
}

// Queue are keys whose removal failed. They are safe for concurrent use.
type Queue struct {
	opt Options
	n   atomic.Int64 // of keys, for readers in the usual case that there is none

	mu      sync.Mutex        // guards the rest
	keys    map[string]uint64 // the last failure of each, by number
	failure uint64
	running bool // somebody settles them
}

// New returns doubts about nothing.
func New(o Options) *Queue { return &Queue{opt: o, keys: make(map[string]uint64)} }

// Any reports whether there is any doubt.
func (d *Queue) Any() bool { return d.n.Load() != 0 }

// Has reports whether there is doubt about key.
func (d *Queue) Has(key string) bool {
	if !d.Any() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.keys[key]
	return ok
}

// Add takes in keys whose removal failed, and sees to it that they are removed.
func (d *Queue) Add(ctx context.Context, why error, keys ...string) {
	dropped, idle := d.add(keys)
	if dropped > 0 {
		d.opt.Dropped(ctx, dropped, why)
	}
	if idle && !d.opt.Works.Start(d.settle) {
		d.stop()
	}
}

func (d *Queue) add(keys []string) (dropped int, idle bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, key := range keys {
		if _, known := d.keys[key]; !known && len(d.keys) >= d.opt.Limit {
			dropped++
			continue
		}
		d.failure++
		d.keys[key] = d.failure
	}
	d.n.Store(int64(len(d.keys)))
	idle = len(d.keys) > 0 && !d.running
	d.running = d.running || idle
	return dropped, idle
}

// Mark returns what a removal that begins now settles: the doubts so far. Of two removals at the same time the one that failed
// may be the later.
func (d *Queue) Mark() (until uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failure
}

// Remove takes out what has been removed after all, by a removal that was begun at a mark.
func (d *Queue) Remove(until uint64, keys ...string) {
	if !d.Any() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(keys, until)
}

func (d *Queue) removeLocked(keys []string, until uint64) {
	for _, key := range keys {
		if d.keys[key] <= until {
			delete(d.keys, key)
		}
	}
	d.n.Store(int64(len(d.keys)))
}

// settle tries again and again until nothing is left, or all is closed: then once more.
func (d *Queue) settle() {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	ctx := d.opt.Works.Context()
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-d.opt.Works.Closing():
			last = true
		}
		keys, until := d.list()
		done, err := d.opt.Again(ctx, keys)
		if d.settled(done, until) {
			return
		}
		if last {
			d.opt.Dropped(ctx, len(keys)-len(done), err)
			d.stop()
		}
	}
}

// list returns the keys and up to which failure they are known.
func (d *Queue) list() (keys []string, until uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.keys)), d.failure
}

// settled takes out what has been removed, but not what failed again after list, and reports whether that was all; then
// nobody settles any more.
func (d *Queue) settled(keys []string, until uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(keys, until)
	d.running = len(d.keys) > 0
	return !d.running
}

func (d *Queue) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = false
}
