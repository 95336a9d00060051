// Package localsync keeps copies in this process in step with Redis: it hears of every change, and it knows when it does not.
//
// A [Local] owns the store of the copies and one link to each master. Correctness rests on an order of steps (internal/client/localstore
// has the proof):
//
//	Changed(k)               around a write of this process, which therefore reads what it wrote
//
// # How changes are heard
//
// It listens on the best of three rungs that the server allows:
//
//	ShortTTL  nothing is heard, and a copy lives for about a second
//
// # How it knows that changes are heard
//
// Once a beat has come back, a link is trusted for Options.Silence from the time the beat was sent. The beat is published through the
// caller's own client and received on the link. So it proves that the link leads to the server that receives the caller's commands, that
// the link is alive, and, since messages keep their order, that all changes before the beat have been heard. It does not prove that changes
// are pushed at all: for that, a push must have been heard too. If nobody writes for a while, one of all the processes writes a probe,
// which all of them hear. If Redis refuses the probe, nothing is proved and nothing is served. Only a probe that Redis acknowledged can
// show that pushes get lost on the way.
//
// Trust is a time that every read compares with the clock: a process that was stopped and resumes serves nothing that it held before. A
// link that falls silent or breaks is made again, and everything is dropped before the link is trusted.
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

// Options say what a Local holds and which servers it listens to. The caller has checked them.
type Options struct {
	Redis      redis.UniversalClient // a *redis.Client or a *redis.ClusterClient
	Prefixes   []string              // of the keys that are copied; no prefix begins with another
	MaxBytes   int64
	MaxEntries int
	MaxTTL     time.Duration // of a copy; 0: as long as Redis keeps the value
	Silence    time.Duration // how long a link is trusted without being heard
	ShortTTL   time.Duration // of a copy while nothing is heard; negative: no copies then
	Outage     time.Duration // how much longer copies are served once changes are no longer heard

	// RungChanged is called when the rung has changed, with the reason, and when writes begin to be refused, so that the rung stays Off.
	// May be nil.
	RungChanged func(to Rung, why error)

	// Lag is told how long it took to hear of an event in Redis, whenever that was measured. May be nil.
	Lag func(time.Duration)
}

// Local is a store of copies that stays in step with Redis. It is safe for concurrent use.
type Local struct {
	opt     Options
	cluster *redis.ClusterClient // nil: a single server
	store   *localstore.Store
	clock   localstore.Clock

	until  atomic.Int64 // copies are in step up to this time, unix ms
	served atomic.Int64 // copies are served up to this time, later by Options.Outage
	most   atomic.Int64 // how long a copy may live, ms
	rungs  atomic.Uint32
	asleep atomic.Bool
	begun  atomic.Uint64 // Begins, to notice a reader that is served nothing

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	works   *background.Group
	recheck chan struct{} // asks followMasters to list the masters again

	announcer announcer
	telling   context.Context // of the announcer: it outlives ctx by a little
	hush      context.CancelFunc

	watched watched
	counts  struct{ heard, flushes, outdated atomic.Uint64 }

	mu        sync.Mutex // guards the rest
	links     map[string]*link
	outage    bool          // copies that may be out of step are kept until changes are heard again
	unsure    bool          // it is not known who the masters are
	noMasters error         // why the last attempt to list them failed
	reads     uint64        // of the store, when sleepy last looked
	readAt    int64         // when it last looked and reads had grown
	awake     chan struct{} // closed when the Local wakes up
	opened    chan struct{} // closed when every first link has been tried
	isOpened  bool
	retell    bool // a link has a new reason for the rung it is on
	given     bool // the first attempt to list the masters failed, so Open need not wait
}

// Of returns the Local that a *mayfly.Local holds. The root package sets it, since this package cannot import the root.
var Of func(local any) *Local

// Open returns a Local once it listens, or has tried once, or ctx ends. A Redis that cannot be reached is not an error: the Local serves
// nothing until it can be.
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

// Close ends the links and drops everything; from then on nothing is served. It waits until ctx ends, and then returns its error, for what
// it started: announcing changes takes up to Silence. It is safe to call Close again.
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

// Redis is the caller's client.
func (t *Local) Redis() redis.UniversalClient { return t.opt.Redis }

// Prefixes are the prefixes of the keys that may be copied.
func (t *Local) Prefixes() []string { return t.opt.Prefixes }

// Store is the store of the copies, for making views.
func (t *Local) Store() *localstore.Store { return t.store }

// Stats says how Local is doing.
type Stats struct {
	localstore.Stats
	Rung     Rung
	Why      error // why the rung is not Tracking; nil if it is
	Entries  int
	Bytes    int64
	Dead     int    // expired entries that still take memory
	Heard    uint64 // keys that changed
	Flushes  uint64 // how often everything was dropped
	Outdated uint64 // copies not kept because the key changed while it was read
}

// Stats adds up the counters. Do not call it on every request.
func (t *Local) Stats() Stats {
	t.mu.Lock()
	rung, why := t.rung(), t.whyLocked()
	t.mu.Unlock()
	return Stats{
		Stats: t.store.Stats(), Rung: rung, Why: why, Entries: t.store.Len(), Bytes: t.store.Bytes(), Dead: t.store.Dead(t.clock.Now()),
		Heard: t.counts.heard.Load(), Flushes: t.counts.flushes.Load(), Outdated: t.counts.outdated.Load(),
	}
}

// forever is a time or a duration, in ms, that is never reached but can still be added to.
const forever = math.MaxInt64 / 4
