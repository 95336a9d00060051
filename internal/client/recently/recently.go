// Package recently remembers keys for a while, in a fixed space.
//
// Two keys that share a place push each other out. So a key may be forgotten early, but is never remembered too long, and is mistaken for
// another only if their 64-bit hashes collide. Use it where forgetting costs one more question and nothing else.
package recently

import (
	"hash/maphash"
	"sync"
	"time"
)

// Keys are keys that were recently remembered. It is safe for concurrent use.
type Keys struct {
	seed   maphash.Seed
	begun  time.Time // times are relative to this, so that changes of the wall clock do not matter
	places []place
}

type place struct {
	mu    sync.Mutex // guards the rest
	hash  uint64
	until time.Duration
	n     int
}

// New returns a memory with this many places.
func New(places int) *Keys {
	return &Keys{seed: maphash.MakeSeed(), begun: time.Now(), places: make([]place, places)}
}

// locked returns the place of key, locked.
func (k *Keys) locked(key string) (p *place, hash uint64) {
	hash = maphash.String(k.seed, key)
	p = &k.places[hash%uint64(len(k.places))]
	p.mu.Lock()
	return p, hash
}

// Add remembers key for d from now.
func (k *Keys) Add(key string, d time.Duration) {
	p, hash := k.locked(key)
	defer p.mu.Unlock()
	p.hash, p.until, p.n = hash, time.Since(k.begun)+d, 1
}

// Has reports whether key is remembered.
func (k *Keys) Has(key string) bool { return k.Count(key) > 0 }

// Remove forgets key.
func (k *Keys) Remove(key string) { k.Add(key, 0) }

// CountIn adds n to the count of key, which begins at zero and ends d after its first addition, and returns the new count.
func (k *Keys) CountIn(key string, n int, d time.Duration) int {
	p, hash := k.locked(key)
	defer p.mu.Unlock()
	now := time.Since(k.begun)
	if p.hash != hash || now >= p.until {
		p.hash, p.until, p.n = hash, now+d, 0
	}
	p.n += n
	return p.n
}

// Count returns the count of key: zero if its time is over or it was forgotten.
func (k *Keys) Count(key string) int {
	p, hash := k.locked(key)
	defer p.mu.Unlock()
	if p.hash != hash || time.Since(k.begun) >= p.until {
		return 0
	}
	return p.n
}
