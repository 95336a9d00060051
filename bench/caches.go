package main

import (
	"encoding/binary"
	"time"

	"github.com/Yiling-J/theine-go"
	"github.com/dgraph-io/ristretto/v2"
	"github.com/hashicorp/golang-lru/v2/expirable"
	"github.com/jellydator/ttlcache/v3"
	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/maypok86/otter/v2"
)

// A cache is one contestant, holding byte slices under string keys, with a deadline on each.
type cache interface {
	get(key string) ([]byte, bool)
	// set stores value for ttl. The first four bytes of value also contain ttl in milliseconds, for the cache that has to be
	// asked.
	set(key string, value []byte, ttl time.Duration)
	settle()  // waits for the cache's background work
	len() int // entries in memory, dead ones included
	close()
}

// A contestant makes caches of a number of entries.
type contestant struct {
	name string
	make func(entries int) cache
	// eachTTL: an entry can have its own TTL.
	eachTTL bool
}

const us, rival = "mayfly", "otter"

var contestants = []contestant{
	{us, newMayfly, true},
	{rival, newOtter, true},
	{"theine", newTheine, true},
	{"ristretto", newRistretto, true},
	{"golang-lru expirable", newExpirable, false},
	{"ttlcache", newTTLCache, true},
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

type mayflyCache struct {
	store *localstore.Store
	view  *localstore.Values[[]byte]
	clock localstore.Clock
}

func newMayfly(entries int) cache {
	s := must(localstore.New(localstore.Options{MaxEntries: entries}))
	return &mayflyCache{s, localstore.NewValues[[]byte](s), localstore.NewClock()}
}

func (c *mayflyCache) get(key string) ([]byte, bool) {
	v, _, ok := c.view.Get(key, c.clock.Now())
	return v, ok
}

func (c *mayflyCache) set(key string, value []byte, ttl time.Duration) {
	now := c.clock.Now()
	c.view.Set(key, value, int64(len(value)), now+ttl.Milliseconds(), now)
}

func (c *mayflyCache) settle()  {}
func (c *mayflyCache) len() int { return c.store.Len() }
func (c *mayflyCache) close()   {}

type otterCache struct{ *otter.Cache[string, []byte] }

func newOtter(entries int) cache { return newOtterWith(entries, nil) }

// newSteadyOtter does its maintenance at once instead of soon, which is the best it can do for its hit ratio.
func newSteadyOtter(entries int) cache { return newOtterWith(entries, func(f func()) { f() }) }

func newOtterWith(entries int, executor func(func())) cache {
	return otterCache{must(otter.New(&otter.Options[string, []byte]{
		MaximumSize: entries,
		Executor:    executor,
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[string, []byte]) time.Duration {
			return time.Duration(binary.LittleEndian.Uint32(e.Value)) * time.Millisecond
		}),
	}))}
}

func (c otterCache) get(key string) ([]byte, bool)                 { return c.GetIfPresent(key) }
func (c otterCache) set(key string, value []byte, _ time.Duration) { c.Set(key, value) }
func (c otterCache) settle()                                       { c.CleanUp() }
func (c otterCache) len() int                                      { return c.EstimatedSize() }
func (c otterCache) close()                                        { c.InvalidateAll(); c.StopAllGoroutines() }

type theineCache struct{ *theine.Cache[string, []byte] }

func newTheine(entries int) cache {
	return theineCache{must(theine.NewBuilder[string, []byte](int64(entries)).Build())}
}

func (c theineCache) get(key string) ([]byte, bool) { return c.Get(key) }
func (c theineCache) set(key string, value []byte, ttl time.Duration) {
	c.SetWithTTL(key, value, 1, ttl)
}
func (c theineCache) settle()  { c.Wait() }
func (c theineCache) len() int { return c.Len() }
func (c theineCache) close()   { c.Close() }

type ristrettoCache struct {
	*ristretto.Cache[string, []byte]
}

func newRistretto(entries int) cache {
	return ristrettoCache{must(ristretto.NewCache(&ristretto.Config[string, []byte]{
		NumCounters: int64(10 * entries), MaxCost: int64(entries), BufferItems: 64, IgnoreInternalCost: true,
	}))}
}

func (c ristrettoCache) get(key string) ([]byte, bool) { return c.Get(key) }
func (c ristrettoCache) set(key string, value []byte, ttl time.Duration) {
	c.SetWithTTL(key, value, 1, ttl)
}
func (c ristrettoCache) settle()  { c.Wait() }
func (c ristrettoCache) len() int { return int(c.MaxCost() - c.RemainingCost()) }
func (c ristrettoCache) close()   { c.Close() }

type expirableCache struct {
	*expirable.LRU[string, []byte]
}

func newExpirable(entries int) cache {
	return expirableCache{expirable.NewLRU[string, []byte](entries, nil, time.Hour)}
}

func (c expirableCache) get(key string) ([]byte, bool)                 { return c.Get(key) }
func (c expirableCache) set(key string, value []byte, _ time.Duration) { c.Add(key, value) }
func (c expirableCache) settle()                                       {}
func (c expirableCache) len() int                                      { return c.Len() }
func (c expirableCache) close()                                        { c.Purge() }

type ttlCache struct {
	*ttlcache.Cache[string, []byte]
}

func newTTLCache(entries int) cache {
	c := ttlcache.New(ttlcache.WithCapacity[string, []byte](uint64(entries)),
		ttlcache.WithDisableTouchOnHit[string, []byte]())
	go c.Start()
	return ttlCache{c}
}

func (c ttlCache) get(key string) ([]byte, bool) {
	if i := c.Get(key); i != nil {
		return i.Value(), true
	}
	return nil, false
}
func (c ttlCache) set(key string, value []byte, ttl time.Duration) { c.Set(key, value, ttl) }
func (c ttlCache) settle()                                         {}
func (c ttlCache) len() int {
	m := c.Metrics()
	return int(m.Insertions - m.Evictions)
}
func (c ttlCache) close() { c.Stop() }
