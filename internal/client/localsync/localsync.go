// Package localsync keeps copies in this process in step with Redis: it hears of every change, and knows when it does
// not.
//
// A [Local] owns the store of the copies and one link to each master. What it rests on is an order of steps (internal/client/localstore
// has the proof):
//
//	t := Begin(k)            before Redis is read; not ok while changes cannot be heard
//	view.Insert(k, t, v)     after it: refused if k has changed in between, or everything was dropped
//	Changed(k)               around a write of this process, which so reads what it wrote
//
// # How changes are heard
//
// By the best of three rungs that the server allows:
//
//	Tracking  CLIENT TRACKING BCAST on a connection of its own: Redis pushes the name of every key under the prefixes that
//	          changes, by whoever's hand, expiry and eviction included
//	PubSub    this library's processes tell each other what they write
//	ShortTTL  nothing is heard, and a copy lives a second or so
//
// # How it is known that changes are heard
//
// A link is trusted for Options.Silence from the time a beat was sent, once that beat has come back. A beat is published
// through the caller's own client and received on the link, so it proves that the link leads to the server that the
// caller's commands go to, that the link is alive, and, as messages keep their order, that all changes before the
// beat have been heard. It does not prove that changes are pushed at all: for that some push must have been heard,
// too. Where nobody writes for a while, one process of all writes a probe, which all hear. Where Redis refuses the probe nothing is
// proved, so nothing is served; and only a probe that Redis acknowledged shows that pushes get lost on the way.
//
// Trust is a time, which every read compares with the clock: a process that was stopped and goes on serves nothing that
// it held before. A link that falls silent or breaks is made again, and everything is dropped before it is trusted.
package localsync

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/background"
	"github.com/mayflycache/mayfly/internal/client/localstore"
)

// Options say what a Local holds and whom it listens to. The caller has checked them.
type Options struct {
	Redis      redis.UniversalClient // a *redis.Client or a *redis.ClusterClient
	Prefixes   []string              // of the keys that are copied; none begins another
	MaxBytes   int64
	MaxEntries int
	MaxTTL     time.Duration // of a copy; 0: as long as Redis keeps the value
	Silence    time.Duration // for how long a link is trusted that is not heard
	ShortTTL   time.Duration // of a copy while nothing is heard; negative: no copies then
	Outage     time.Duration // for how much longer copies are served when nothing can be heard any more

	// RungChanged is told when the rung changed, and why; and when writes began to be refused, so that the rung remains
	// Off. May be nil.
	RungChanged func(to Rung, why error)

	// Lag is told how long it took to hear of something that happened in Redis, whenever that was tried. May be nil.
	Lag func(time.Duration)
}

// Local is a store of copies that is kept in step with Redis. It is safe for concurrent use.
type Local struct {
	opt     Options
	cluster *redis.ClusterClient // nil: a single server
	store   *localstore.Store
	clock   localstore.Clock

	until  atomic.Int64 // copies are in step up to this time, unix ms
	served atomic.Int64 // and served up to this one: later by Options.Outage
	most   atomic.Int64 // how long a copy may live, ms
	rungs  atomic.Uint32
	asleep atomic.Bool
	begun  atomic.Uint64 // Begins, so that a reader is noticed who is served nothing

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	works   *background.Group
	recheck chan struct{} // who the masters are has to be asked

	announcer announcer
	telling   context.Context // of the announcer: it outlives ctx a little
	hush      context.CancelFunc

	watched watched
	counts  struct{ heard, flushes, outdated atomic.Uint64 }

	mu        sync.Mutex // guards the rest
	links     map[string]*link
	outage    bool          // copies are kept that may be out of step, until it is known again that changes are heard
	unsure    bool          // who the masters are is not known
	noMasters error         // why not, when they were asked for last
	reads     uint64        // of the store, when sleepy looked last
	readAt    int64         // when it last looked and reads had grown
	awake     chan struct{} // closed when it is no longer asleep
	opened    chan struct{} // closed when every first link was tried
	isOpened  bool
	retell    bool // a link has another cause for the rung that it is on
	given     bool // the first attempt to list the masters failed, and Open waits no longer
}

// Of returns what a *mayfly.Local holds. The root package, which this one cannot import, sets it.
var Of func(local any) *Local

// Open returns a Local that listens, or that tried to once, or when ctx ends. A Redis that cannot be reached is no error:
// nothing is served until it can be.
func Open(ctx context.Context, o Options) (*Local, error) {
	store, err := localstore.New(localstore.Options{MaxBytes: o.MaxBytes, MaxEntries: o.MaxEntries})
	if err != nil {
		return nil, err
	}
	t := &Local{
		opt: o, store: store, clock: localstore.NewClock(),
		announcer: announcer{of: o.Prefixes, keys: make(map[string]bool), prefixes: make(map[string]bool)}, recheck: make(chan struct{}, 1), opened: make(chan struct{}), awake: make(chan struct{}),
		links: make(map[string]*link), works: background.New(errClosed),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.telling, t.hush = context.WithCancel(t.works.Context())
	t.readAt = t.clock.Now()
	if t.cluster, _ = o.Redis.(*redis.ClusterClient); t.cluster != nil {
		t.cluster.OnNewNode(func(*redis.Client) { t.Moved() })
		t.works.Start(t.followMasters)
	} else {
		node := o.Redis.(*redis.Client)
		t.mu.Lock()
		t.addLinkLocked(node.Options().Addr, node, "")
		t.mu.Unlock()
	}
	select {
	case <-t.opened:
	case <-ctx.Done():
	}
	return t, nil
}

// Close ends the links and drops everything; from then on nothing is served. It waits for what it started until ctx
// ends, and then returns its error: up to Silence for changes to be announced. Closing again is fine.
func (t *Local) Close(ctx context.Context) error {
	t.cancel()
	defer time.AfterFunc(t.opt.Silence, t.hush).Stop()
	t.mu.Lock()
	t.settleLocked()
	t.mu.Unlock()
	t.wake()
	t.drop("")
	return t.works.Close(ctx)
}

// Closed reports whether Close was called.
func (t *Local) Closed() bool { return t.ctx.Err() != nil }

// Redis is the client that Local listens beside.
func (t *Local) Redis() redis.UniversalClient { return t.opt.Redis }

// Prefixes are those of the keys that may be copied.
func (t *Local) Prefixes() []string { return t.opt.Prefixes }

// Store is where the copies are, for views of it.
func (t *Local) Store() *localstore.Store { return t.store }

// Stats says how Local is doing.
type Stats struct {
	localstore.Stats
	Rung     Rung
	Why      error // the rung is not Tracking; nil if it is
	Entries  int
	Bytes    int64
	Dead     int    // entries that are over and still take memory
	Heard    uint64 // keys that changed
	Flushes  uint64 // times that everything was dropped
	Outdated uint64 // copies not kept because the key changed while it was read
}

// Stats adds up the counters. It is for now and then, not for every request.
func (t *Local) Stats() Stats {
	t.mu.Lock()
	rung, why := t.rung(), t.whyLocked()
	t.mu.Unlock()
	return Stats{
		Stats: t.store.Stats(), Rung: rung, Why: why, Entries: t.store.Len(), Bytes: t.store.Bytes(), Dead: t.store.Dead(t.clock.Now()),
		Heard: t.counts.heard.Load(), Flushes: t.counts.flushes.Load(), Outdated: t.counts.outdated.Load(),
	}
}

// forever is a time or a length, in ms, that does not come and can still be added to.
const forever = math.MaxInt64 / 4
