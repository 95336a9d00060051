package cacheaside

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// doubts are the keys whose deletion failed: Redis may still hold what must not be served. The zero doubts are none.
type doubts struct {
	n atomic.Int64 // of keys, for readers in the usual case that there is none

	mu      sync.Mutex        // guards the rest
	keys    map[string]uint64 // the last failure of each, by number
	failure uint64
	running bool // somebody settles them
}

func (d *doubts) has(full string) bool {
	if d.n.Load() == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.keys[full]
	return ok
}

// add takes in keys up to limit, and reports how many there was no room for, and whether somebody has to be found who
// settles them.
func (d *doubts) add(fulls []string, limit int) (dropped int, idle bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keys == nil {
		d.keys = make(map[string]uint64)
	}
	for _, full := range fulls {
		if _, known := d.keys[full]; !known && len(d.keys) >= limit {
			dropped++
			continue
		}
		d.failure++
		d.keys[full] = d.failure
	}
	d.n.Store(int64(len(d.keys)))
	idle = len(d.keys) > 0 && !d.running
	d.running = d.running || idle
	return dropped, idle
}

// list returns the keys and up to which failure they are known.
func (d *doubts) list() (fulls []string, until uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.keys)), d.failure
}

// remove takes out what has been deleted after all.
func (d *doubts) remove(fulls []string) {
	if d.n.Load() == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(fulls, d.failure)
}

func (d *doubts) removeLocked(fulls []string, until uint64) {
	for _, full := range fulls {
		if d.keys[full] <= until {
			delete(d.keys, full)
		}
	}
	d.n.Store(int64(len(d.keys)))
}

// settled takes out what has been deleted, but not what failed again after list, and reports whether that was all; then
// nobody settles any more.
func (d *doubts) settled(fulls []string, until uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeLocked(fulls, until)
	d.running = len(d.keys) > 0
	return !d.running
}

// stop says that nobody settles any more.
func (d *doubts) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running = false
}
