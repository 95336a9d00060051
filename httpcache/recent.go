package httpcache

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// recent remembers keys for a while, in a fixed space: another key in the same place makes it forget one, which costs a
// question to Redis, or a wait, and nothing else.
type recent [1024]struct {
	key   atomic.Uint64
	until atomic.Int64 // since started, which a change of the wall clock does not move
}

var (
	recentSeed = maphash.MakeSeed()
	started    = time.Now()
)

func (q *recent) has(key string) bool {
	h := maphash.String(recentSeed, key)
	at := &q[h%uint64(len(q))]
	return at.key.Load() == h && int64(time.Since(started)) < at.until.Load()
}

func (q *recent) add(key string, d time.Duration) {
	h := maphash.String(recentSeed, key)
	at := &q[h%uint64(len(q))]
	at.until.Store(int64(time.Since(started) + d))
	at.key.Store(h)
}
