package httpcache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly"
)

// doubts are the resources that a request has changed and that could not be removed: Redis may still hold what must not be
// served. The zero doubts are none.
type doubts struct {
	n atomic.Int64 // of keys, for readers in the usual case that there is none

	mu      sync.Mutex // guards the rest
	keys    map[string]int
	running bool // somebody settles them
}

// errDoubted says that what Redis holds of a key must not be served.
var errDoubted = errors.New("a removal has not been done yet")

func (d *doubts) any() bool { return d.n.Load() != 0 }

func (d *doubts) has(key string) bool {
	if !d.any() {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keys[key] > 0
}

// doubt remembers keys, and sees to it that they are removed when Redis is back.
func (c *Cache) doubt(ctx context.Context, keys []string) {
	d := &c.doubts
	d.mu.Lock()
	if d.keys == nil {
		d.keys = make(map[string]int)
	}
	dropped := 0
	for _, key := range keys {
		if d.keys[key] == 0 && len(d.keys) >= c.opt.Faults.Queue {
			dropped++
			continue
		}
		d.keys[key]++
	}
	d.n.Store(int64(len(d.keys)))
	idle := !d.running
	d.running = true
	d.mu.Unlock()
	c.near.forget(keys...) // what was read between the attempt and now
	if dropped > 0 {
		c.tell(ctx, mayfly.Event{Kind: mayfly.Removal, Outcome: mayfly.Dropped, N: dropped})
	}
	if idle && !c.works.start(c.settle) {
		d.mu.Lock()
		d.running = false
		d.mu.Unlock()
	}
}

// settleEvery is how often a removal is tried again.
const settleEvery = 500 * time.Millisecond

// settle removes what is in doubt, again and again until nothing is left or the cache is closed: then once more.
func (c *Cache) settle() {
	d := &c.doubts
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for last := false; ; {
		select {
		case <-tick.C:
		case <-c.works.closing:
			last = true
		}
		d.mu.Lock()
		known := maps.Clone(d.keys)
		d.mu.Unlock()
		keys := slices.Collect(maps.Keys(known))
		err := c.purgeKeys(c.works.ctx, keys)
		d.mu.Lock()
		if err == nil {
			for key, times := range known {
				if d.keys[key] == times { // not doubted again meanwhile
					delete(d.keys, key)
				}
			}
		}
		left := len(d.keys)
		d.n.Store(int64(left))
		done := left == 0 || last
		d.running = !done
		d.mu.Unlock()
		if done {
			if left > 0 {
				c.tell(c.works.ctx, mayfly.Event{Kind: mayfly.Removal, Outcome: mayfly.Dropped, N: left, Err: err})
			}
			return
		}
	}
}
