package httpcache

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// quiet remembers renewals that were lost, in a fixed space: another key in the same place makes it forget one, which
// costs a question.
type quiet [256]struct {
	key   atomic.Uint64
	until atomic.Int64 // since epoch, which a change of the wall clock does not move
}

var (
	quietSeed = maphash.MakeSeed()
	started   = time.Now()
)

func (q *quiet) is(key string) bool {
	h := maphash.String(quietSeed, key)
	at := &q[h%uint64(len(q))]
	return at.key.Load() == h && int64(time.Since(started)) < at.until.Load()
}

func (q *quiet) set(key string) {
	h := maphash.String(quietSeed, key)
	at := &q[h%uint64(len(q))]
	at.until.Store(int64(time.Since(started) + quietFor))
	at.key.Store(h)
}
