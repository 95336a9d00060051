package localstore

import "math"

// entryCost returns what an entry takes from the budget if its value costs cost.
func entryCost(key string, cost int64) int64 {
	fixed := int64(Overhead + len(key))
	if cost < 0 || cost > math.MaxInt64-fixed {
		return math.MaxInt64
	}
	return fixed + cost
}

// makeRoom removes one entry of sh, whose lock the caller holds: a dead one, or else the one that the policy can do
// without. If sh is empty it evicts from another shard, and releases the lock of sh meanwhile, because no goroutine ever
// holds two.
func (s *Store) makeRoom(sh *shard, now int64) {
	if sh.reap(now, 1) > 0 || sh.evict() {
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
