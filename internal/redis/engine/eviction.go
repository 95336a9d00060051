package engine

// Eviction: what happens when the data outgrow maxmemory.
//
// Memory is estimated, not measured: each object has the weight that size gives it, kept per slot and only while there is a limit;
// emptyWeight stands for the rest. Like Redis, the engine does not search for the best victim but takes the best of a small sample.

// emptyWeight is the weight of an engine without keys.
const emptyWeight = 16 << 10

// policy says which keys are evicted to make room for others.
type policy uint8

// The policies, in Redis's order.
const (
	volatileLRU policy = iota
	volatileLFU
	volatileRandom
	volatileTTL
	allKeysLRU
	allKeysLFU
	allKeysRandom
	noEviction
)

// Policies are the names of the eviction policies; the last is the default.
var Policies = []string{"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random", "noeviction"}

// lfu reports whether objects carry a frequency instead of the time of their last use.
func (p policy) lfu() bool { return p == volatileLFU || p == allKeysLFU }

// ages reports whether the policy depends on the use of each key, so that each needs a record of its own.
func (p policy) ages() bool { return p.lfu() || p == volatileLRU || p == allKeysLRU }

// volatile reports whether only keys with a deadline may be evicted.
func (p policy) volatile() bool { return p <= volatileTTL }

// full reports whether the data do not fit maxmemory, and commands of s that need memory are refused.
func (e *Engine) full(s *Session) bool {
	return e.settings.maxMemory > 0 && !s.obeys && !e.hides() && !e.makeRoom()
}

// makeRoom evicts keys until the data fit maxmemory, and reports whether they do.
func (e *Engine) makeRoom() bool {
	for e.weight() > e.settings.maxMemory {
		d, o := e.victim()
		if o == nil {
			return false
		}
		e.stats.evictedKeys++
		e.lose(d, o, notifyEvicted, "evicted")
		if !e.scripts.busy() {
			e.endUnit(Done)
		}
	}
	return true
}

// victim draws candidates from every database and returns the best of them; nil if there is none.
func (e *Engine) victim() (from *db, best *object) {
	var most uint64
	for _, d := range e.dbs {
		for range e.settings.samples {
			o := e.candidate(d)
			if o == nil {
				break
			}
			if w := e.worth(d, o); best == nil || w > most {
				from, best, most = d, o, w
			}
		}
	}
	return from, best
}

// candidate draws an object of d that the policy may evict; nil if it finds none.
func (e *Engine) candidate(d *db) *object {
	switch {
	case e.settings.policy == noEviction || d.len() == 0:
		return nil
	case e.settings.policy.volatile():
		if id, ok := d.deadlines.Sample(e.draw()); ok {
			return d.at(id)
		}
		return nil
	}
	return d.random(e.draw)
}

// worth rates o as a victim: the highest goes first.
func (e *Engine) worth(d *db, o *object) uint64 {
	switch e.settings.policy {
	case volatileTTL:
		return uint64(1<<63-1) - uint64(d.deadline(o))
	case volatileLRU, allKeysLRU:
		return uint64(o.idle(e))
	case volatileLFU, allKeysLFU:
		return uint64(255 - o.frequency(e))
	}
	return 0
}

// weight returns roughly how many bytes the data take. Without a limit no weights are kept, and every object is weighed anew.
func (e *Engine) weight() int64 {
	sum := int64(emptyWeight)
	for _, d := range e.dbs {
		if e.settings.maxMemory > 0 {
			sum += d.weight
			continue
		}
		d.each(func(o *object) { sum += int64(o.size()) })
	}
	return sum
}

// limitMemory sets maxmemory; 0 is no limit. Keys beyond the new limit are evicted at once.
func (e *Engine) limitMemory(bytes int64) {
	e.settings.maxMemory = bytes
	e.weighAll()
	if bytes > 0 && e.master == nil {
		e.makeRoom()
	}
}

// weighAll weighs all objects anew.
func (e *Engine) weighAll() {
	for _, d := range e.dbs {
		d.scales = scales{}
		if e.settings.maxMemory > 0 {
			d.each(func(o *object) { d.weigh(o) })
		}
	}
}

// scales hold the weights of a keyspace's objects, by slot.
type scales struct {
	weights []uint32
	weight  int64 // their sum
}

// weigh brings the weight of o up to date.
func (w *scales) weigh(o *object) {
	if n := int(o.id) + 1 - len(w.weights); n > 0 {
		w.weights = append(w.weights, make([]uint32, n)...)
	}
	now := uint32(min(o.size(), 1<<32-1))
	w.weight += int64(now) - int64(w.weights[o.id])
	w.weights[o.id] = now
}

// unweigh subtracts the weight of o, which is being removed.
func (w *scales) unweigh(o *object) {
	if int(o.id) < len(w.weights) {
		w.weight -= int64(w.weights[o.id])
		w.weights[o.id] = 0
	}
}
