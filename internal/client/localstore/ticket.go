package localstore

import "hash/maphash"

// A copy of something that others change may be inserted only if it is not older than the last change that was heard of.
// So whoever reads the original draws a ticket before, and inserts with it:
//
//	reader                          change
//	t = Ticket(k)
//	read the original: old
//	                                the original becomes new
//	                                heard: Invalidate(k) counts, and deletes
//	Insert(k, t, old): Outdated
//
// If the change is heard after the Insert, Invalidate deletes what was inserted: it takes the lock of the shard after it
// has counted, and Insert compares the count under that lock. If the original was read after the change, the value is
// new, and a late Invalidate costs no more than the copy.

// stripes is how many counters the keys share. Two keys that share one cost each other an insert now and then.
const stripes = 1024

// Ticket is what the counter of a key showed.
type Ticket uint64

// Ticket returns the ticket for an Insert of key. It must be drawn before the original is asked for.
func (s *Store) Ticket(key string) Ticket {
	return Ticket(s.changes[maphash.String(s.seed, key)%stripes].Load())
}

// Insert is Set for a value that was read under ticket t: it does nothing if key was invalidated since.
func (v *Values[V]) Insert(key string, t Ticket, value V, cost, deadline, now int64) Outcome {
	return v.put(key, value, cost, deadline, now, func() bool { return v.store.Ticket(key) == t })
}

// Invalidate removes key from every view and makes the tickets for it worthless. It reports whether a view had it.
func (s *Store) Invalidate(key string) bool {
	s.changes[maphash.String(s.seed, key)%stripes].Add(1)
	return s.Delete(key)
}

// InvalidateAll removes the keys that begin with prefix, all if it is empty, and makes all tickets worthless.
func (s *Store) InvalidateAll(prefix string) {
	for i := range s.changes {
		s.changes[i].Add(1)
	}
	s.Clear(prefix)
}
