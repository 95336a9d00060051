package localstore

// Writes give back the memory of dead entries. A hundred times a second at most, one write sweeps all shards; the
// others only look at the time. So it does not matter which keys are written, or how many at once: ten writes a second
// keep up with forty thousand deadlines a second, and a hundred writes with ten times that.
const (
	sweepEvery = 10   // ms
	sweepMax   = 4096 // entries, so that a sweep delays its write by no more than a millisecond
)

// sweep reaps if it is time to. The caller holds no lock.
func (s *Store) sweep(now int64) {
	last := s.swept.Load()
	if since := now - last; since >= 0 && since < sweepEvery { // if the clock went backwards it is time, too
		return
	}
	if s.swept.CompareAndSwap(last, now) {
		s.Reap(now, sweepMax)
	}
}

// Reap gives back the memory of up to max entries that are dead at now and returns their number. Writes do this
// anyway; Reap is for the owner of a store without writes.
func (s *Store) Reap(now int64, max int) int {
	n := 0
	first := int(uint64(now) / sweepEvery % uint64(len(s.shards))) // so that a sweep that stops early does not neglect the same shards for long
	for i := range s.shards {
		if n == max {
			break
		}
		sh := &s.shards[(first+i)%len(s.shards)]
		sh.mu.Lock()
		n += sh.reap(now, max-n)
		sh.mu.Unlock()
	}
	return n
}
