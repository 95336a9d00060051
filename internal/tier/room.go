package tier

import "math"

// reapPerWrite is how many dead entries a write gives back at most: enough that a thousand writes a second keep up with a
// hundred thousand deadlines a second, and little enough that no write waits long.
const reapPerWrite = 256

// entryCost is what the budget is charged for an entry whose value costs cost.
func entryCost(key string, cost int64) int64 {
	fixed := int64(Overhead + len(key))
	if cost < 0 || cost > math.MaxInt64-fixed {
		return math.MaxInt64
	}
	return fixed + cost
}

// makeRoom evicts one entry: from sh, whose lock the caller holds, or from another shard if sh has none. Then it lets
// go of the lock for a moment, because no one ever holds two.
func (s *Store) makeRoom(sh *shard) {
	if sh.evict() {
		return
	}
	sh.mu.Unlock()
	for i := range s.shards {
		other := &s.shards[(sh.number+1+i)%len(s.shards)]
		other.mu.Lock()
		evicted := other.evict()
		other.mu.Unlock()
		if evicted {
			break
		}
	}
	sh.mu.Lock()
}

// Reap gives back the memory of up to max entries that are dead at now and returns how many. Writes do this
// along the way; it is for an owner whose store is not written to.
func (s *Store) Reap(now int64, max int) int {
	n := 0
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		n += sh.reap(now, max-n)
		sh.mu.Unlock()
		if n == max {
			break
		}
	}
	return n
}

// Next returns when Reap will find something, the earliest over all shards. ok is false when nothing that is held has a deadline: then
// a timer can be parked until the next write.
func (s *Store) Next() (at int64, ok bool) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		next, some := sh.deadlines.Next()
		sh.mu.Unlock()
		if some && (!ok || next < at) {
			at, ok = next, true
		}
	}
	return at, ok
}
