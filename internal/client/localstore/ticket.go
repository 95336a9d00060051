package localstore

import "hash/maphash"

// A copy of something that others change may be inserted only if it is not older than the last change that this process has heard of.
// So a reader draws a ticket before it reads the original, and inserts with the ticket:
//
//	reader                          change
//	t = Ticket(k)
//	read the original: old
//	                                the original becomes new
//	                                heard: Invalidate(k) counts, and deletes
//	Insert(k, t, old): Outdated
//
// If the change is heard after the Insert, Invalidate deletes the inserted copy: it takes the lock of the shard after
// counting, and Insert compares the count under that lock. If the original was read after the change, the value is
// new, and a late Invalidate costs only the copy.

// stripes is the number of counters that the keys share. Two keys with the same counter occasionally cost each other an insert.
const stripes = 1024

// Ticket is the value of a key's counter.
type Ticket uint64

// Ticket returns the ticket for an Insert of key. It must be drawn before the original is requested.
func (s *Store) Ticket(key string) Ticket {
	return Ticket(s.changes[maphash.String(s.seed, key)%stripes].Load())
}

// Insert is Set for a value that was read under ticket t. It does nothing if key was invalidated since.
func (v *Values[V]) Insert(key string, t Ticket, value V, cost, deadline, now int64) Outcome {
	return v.put(key, value, cost, deadline, now, func() bool { return v.store.Ticket(key) == t })
}

// Invalidate removes key from every view and voids its tickets. It reports whether a view had it.
func (s *Store) Invalidate(key string) bool {
	s.changes[maphash.String(s.seed, key)%stripes].Add(1)
	return s.Delete(key)
}

// InvalidateAll removes the keys that begin with prefix, or all keys if it is empty, and voids all tickets.
func (s *Store) InvalidateAll(prefix string) {
	for i := range s.changes {
		s.changes[i].Add(1)
	}
	s.Clear(prefix)
}
