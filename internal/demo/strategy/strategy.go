// Package strategy has the ways to keep slow values in Redis, from the handwritten code that everybody starts with to everything that mayfly does,
// so that they can be compared: the same interface, and each protection a switch.
//
//	cache, err := strategy.Open(ctx, strategy.Mayfly, strategy.Options{Redis: rdb, Name: "products", Prefix: "cache:product:", TTL: time.Minute}, load)
//	v, err := cache.Get(ctx, 7)
//	err = cache.Close(ctx)
//
// It is for cmd/mayfly and the measurements, not for programs: those use cacheaside.
package strategy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/jitter"
)

// Strategy is a way to keep a value: GET, otherwise load and SET with a TTL, plus additions. The zero value adds nothing.
type Strategy struct {
	Name string // for people

	// Jitter varies each TTL.
	Jitter jitter.Spread

	// Early renews a value before it expires; nil never does. Without Lease the reader that is drawn renews it, as in the TTL guide: that reader
	// waits, and nothing keeps others from doing the same.
	Early earlyrefresh.Policy

	// Lease is cacheaside: one load at a time across all processes, and renewals in the background.
	Lease bool

	// Local also keeps copies in the process. It needs Lease.
	Local bool

	// Unbounded lets any number of loads run at once, where Lease lets in as many as their origin can work on. Handwritten code has no bound.
	Unbounded bool
}

// The ladder: each step is something that people do against a stampede.
var (
	Plain  = Strategy{Name: "GET, else load and SET EX"}
	Jitter = Strategy{Name: "+ the guide's jitter", Jitter: jitter.Default}
	Linear = Strategy{Name: "+ the guide's early refresh", Early: earlyrefresh.Linear(1)}
	XFetch = Strategy{Name: "+ XFetch instead", Early: earlyrefresh.XFetch(1)}
	Lease  = Strategy{Name: "mayfly, the lease alone", Lease: true}
	Mayfly = Strategy{Name: "mayfly, all of it", Jitter: jitter.Default, Early: earlyrefresh.XFetch(1), Lease: true, Local: true}

	All = []Strategy{Plain, Jitter, Linear, XFetch, Lease, Mayfly}
)

// Options say where values live. All fields except Observer, RedisTimeout and LoadTimeout are required.
type Options struct {
	Redis        *redis.Client // a process's own
	Name, Prefix string
	TTL          time.Duration

	// RedisTimeout is how long a Get of a strategy with Lease may wait for Redis. Zero is cacheaside's default. Handwritten code
	// waits as long as its client does.
	RedisTimeout time.Duration

	// LoadTimeout is how long a load of a strategy with Lease may take. Zero is cacheaside's default.
	LoadTimeout time.Duration

	// Observer receives events about reads, loads and the rest. Handwritten code reports only its reads.
	Observer mayfly.Observer
}

// Cache keeps values by one strategy for one process.
type Cache[V any] struct {
	get   func(ctx context.Context, key int) (V, error)
	fill  func(ctx context.Context, values map[int]V) error
	kept  func(ctx context.Context, key int) Kept
	aside *cacheaside.Cache[int, V] // nil without a lease
	local *mayfly.Local             // nil without copies
}

// Open returns a cache. It connects if the strategy has a local tier.
func Open[V any](ctx context.Context, s Strategy, o Options, load func(ctx context.Context, key int) (V, error)) (*Cache[V], error) {
	if s.Early == nil {
		s.Early = earlyrefresh.Never
	}
	if !s.Lease {
		if s.Local {
			return nil, errors.New("strategy: Local needs Lease: nothing would tell the copies of a change")
		}
		h := &byHand[V]{s, o, load}
		return &Cache[V]{get: h.get, fill: h.fill, kept: h.kept}, nil
	}
	c := new(Cache[V])
	var err error
	if s.Local {
		c.local, err = mayfly.OpenLocal(ctx, mayfly.LocalOptions{Redis: o.Redis, Prefixes: []string{o.Prefix}, MaxEntries: 10_000, Observer: o.Observer})
		if err != nil {
			return nil, fmt.Errorf("strategy: %w", err)
		}
	}
	ns := mayfly.Namespace[int, V]{Name: o.Name, Redis: o.Redis, Prefix: o.Prefix, TTL: o.TTL, Jitter: s.Jitter, Local: c.local, Observer: o.Observer}
	aside := cacheaside.Options{Early: s.Early, LoadTimeout: o.LoadTimeout, RedisTimeout: o.RedisTimeout}
	if s.Unbounded {
		aside.LoadLimit = -1
	}
	c.aside, err = cacheaside.New(ns, load, aside)
	if err != nil {
		c.Close(ctx)
		return nil, fmt.Errorf("strategy: %w", err)
	}
	c.get, c.fill, c.kept = c.aside.Get, c.aside.SetMany, c.lookup
	return c, nil
}

// Get returns key's value: the cached one, or the result of load.
func (c *Cache[V]) Get(ctx context.Context, key int) (V, error) { return c.get(ctx, key) }

// Fill stores values like a job that writes a whole table into the cache: all in one moment, without a load.
func (c *Cache[V]) Fill(ctx context.Context, values map[int]V) error { return c.fill(ctx, values) }

// Kept describes where a copy is. The zero value means nowhere.
type Kept struct {
	In   mayfly.Outcome // as if it were read now; empty: nowhere
	Age  time.Duration  // since it was stored, if that is known
	Left time.Duration  // until it ends
}

// Kept returns where key's copy is, without a load.
func (c *Cache[V]) Kept(ctx context.Context, key int) Kept { return c.kept(ctx, key) }

func (c *Cache[V]) lookup(ctx context.Context, key int) Kept {
	if e, ok, err := c.aside.Lookup(ctx, key); ok && err == nil {
		return Kept{e.Outcome, e.Age, e.TTL}
	}
	return Kept{}
}

// Loads returns how many loads run, how many may run, and how many wait for their turn. Handwritten code has no limit, and does not count.
func (c *Cache[V]) Loads() mayfly.OriginStats {
	if c.aside == nil {
		return mayfly.OriginStats{Limit: -1}
	}
	return c.aside.Origin().Stats()
}

// Close ends the background work. Values stay in Redis until they expire.
func (c *Cache[V]) Close(ctx context.Context) (err error) {
	if c.aside != nil {
		err = c.aside.Close(ctx)
	}
	if c.local != nil {
		err = errors.Join(err, c.local.Close(ctx))
	}
	return err
}
