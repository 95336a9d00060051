package httpcache

import (
	"hash/maphash"
	"sync"
	"time"
)

// A URL of which clients ask for ever new variants would be written to Redis for each of them, and those that are of use
// would leave. So when more than four times MaxVariants of one left within Shared.Pass, and at least 256, new ones are not stored
// until that is over: they are answered by the handler, and what is stored stays.
func (o *Options) flood() int { return max(4*o.MaxVariants, 256) }

// floods counts, in a fixed space, the variants that left lately: another URL in the same place makes it forget one.
type floods [256]struct {
	mu    sync.Mutex // guards the rest
	key   uint64
	left  int
	until time.Time
}

var floodSeed = maphash.MakeSeed()

// leave counts n variants that left a resource, over d from the first, and reports whether they are more than most just now.
func (f *floods) leave(key string, n, most int, d time.Duration) (began bool) {
	h, now := maphash.String(floodSeed, key), time.Now()
	at := &f[h%uint64(len(f))]
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.key != h || now.After(at.until) {
		at.key, at.left, at.until = h, 0, now.Add(d)
	}
	before := at.left
	at.left += n
	return before <= most && at.left > most
}

// over reports whether more than most left.
func (f *floods) over(key string, most int) bool {
	h := maphash.String(floodSeed, key)
	at := &f[h%uint64(len(f))]
	at.mu.Lock()
	defer at.mu.Unlock()
	return at.key == h && at.left > most && time.Now().Before(at.until)
}
