package cacheaside

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// near is this cache's part of the local tier; nil is none. What the cache keeps to:
//
//	t := begin(k)             before Redis is read
//	insert(k, t, found, ...)  after it: refused if k has changed in between, by anyone. Never after a write: the change
//	                          that a write is would be heard later, and take the copy away again
//	forget(k)                 before a write is sent, and changed(k) after its reply
//
// so that a copy is never older than the last change this process has heard of, and it has heard of its own.
type near[V any] struct {
	tier   *localsync.Local
	view   *localstore.Values[held[V]]
	clone  func(V) V // may be nil
	cost   func(V) int
	prefix string
	ttl    time.Duration // of values that do not say for how long they are fresh
}

// held is a copy: a value, or that there is none, and what is known of it.
type held[V any] struct {
	value         V
	fill          record.ID     // which fill it is a copy of; zero if another program wrote it
	freshTo, ends int64         // by the tier's clock: fresh up to, kept by Redis up to
	fresh, cost   time.Duration // for how long it was fresh at first, what a load of it took
	negative      bool
}

// heldCost is about what a copy takes beside its value.
const heldCost = 64

func newNear[K comparable, V any](ns mayfly.Namespace[K, V]) *near[V] {
	if ns.Local == nil {
		return nil
	}
	t := ns.Local.Synced()
	view := localstore.NewValues[held[V]](t.Store())
	if o, ok := ns.Observer.(mayfly.LocalObserver); ok {
		o.ObserveLocal(ns.Name, view.Hits())
	}
	return &near[V]{t, view, ns.Clone, ns.Cost, ns.Prefix, ns.TTL}
}

// begin draws a ticket for the read of key that follows.
func (n *near[V]) begin(key string) localsync.Ticket {
	if n == nil {
		return localsync.Ticket{}
	}
	return n.tier.Begin(key)
}

// insert keeps a copy of what was found under ticket t, if it is fresh and has an end.
func (n *near[V]) insert(key string, t localsync.Ticket, f lease.Found, s sight[V]) {
	left := f.Left - f.Header.Window
	if n == nil || s.standing != fresh || left <= 0 || f.Left <= 0 {
		return
	}
	h := held[V]{
		value: n.copy(s.entry.Value), fill: f.Header.ID, freshTo: t.End(left), ends: t.End(f.Left),
		fresh: f.Header.Fresh, cost: f.Header.Cost, negative: s.negative,
	}
	if f.Kind == record.Plain {
		h.fresh = n.ttl
	}
	size := len(f.Raw)
	if n.cost != nil && !s.negative {
		size = n.cost(s.entry.Value)
	}
	localsync.Insert(n.tier, n.view, key, t, h, heldCost+int64(size), left)
}

func (n *near[V]) copy(v V) V {
	if n.clone == nil {
		return v
	}
	return n.clone(v)
}

func (n *near[V]) forget(keys ...string) {
	if n != nil {
		n.tier.Forget(keys...)
	}
}

func (n *near[V]) changed(ctx context.Context, keys ...string) {
	if n != nil {
		n.tier.Changed(ctx, keys...)
	}
}

func (n *near[V]) forgetAll() {
	if n != nil {
		n.tier.ForgetAll(n.prefix)
	}
}

func (n *near[V]) changedAll(ctx context.Context) {
	if n != nil {
		n.tier.ChangedAll(ctx, n.prefix)
	}
}

// entry is what is known of the copy at now.
func (h *held[V]) entry(now int64) Entry[V] {
	e := Entry[V]{Value: h.value, Source: SourceLocal, Fresh: millis(h.freshTo - now), TTL: millis(h.ends - now)}
	if h.fill != (record.ID{}) {
		e.Age = max(h.fresh-e.Fresh, 0)
	}
	return e
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// atHand returns the copy of key's value that the local tier has, or nil, and the tier's time. It allocates nothing for keys
// of the commonest types, and tells nobody: the tier counts its hits.
func (c *Cache[K, V]) atHand(key K) (h *held[V], now int64) {
	now = c.near.tier.Now()
	if !c.near.tier.Trusted(now) || c.works.Err() != nil {
		return nil, now
	}
	if c.ns.Key == nil {
		var room [96]byte
		if full, plain := keyform.AppendPlain(append(room[:0], c.ns.Prefix...), key); plain {
			return c.near.view.At(full, now), now
		}
	}
	full, err := c.form([]byte(c.ns.Prefix), key)
	if err != nil {
		return nil, now
	}
	return c.near.view.At(full, now), now
}

// hit returns the copy of key's value, and has it renewed if it is time, which is asked in the second half of its life.
func (c *Cache[K, V]) hit(ctx context.Context, key K, load loader[K, V]) (v V, negative, ok bool) {
	h, now := c.atHand(key)
	if h == nil || h.negative {
		return v, h != nil, h != nil
	}
	if left := millis(h.freshTo - now); left < h.fresh/2 && c.opt.Early.Due(h.fresh, left, h.cost, rand.Float64()) {
		c.renewHeld(ctx, key, h.fill, load)
	}
	return c.near.copy(h.value), false, true
}

// renewHeld renews what this process has a copy of.
func (c *Cache[K, V]) renewHeld(ctx context.Context, key K, fill record.ID, load loader[K, V]) {
	if full, err := c.fullKey(key); err == nil {
		c.renew(ctx, pending[K, V]{key: key, full: full, load: load, unseen: true, fill: fill})
	}
}

// seeAgain finds in Redis what p is to renew. It reports false if that is something else by now.
func (c *Cache[K, V]) seeAgain(ctx context.Context, p *pending[K, V]) bool {
	begun := time.Now()
	f, err := c.guard.Look(ctx, p.full, true)
	p.spent += time.Since(begun)
	if err != nil {
		c.tellBackend(ctx, p.full, err)
		return false
	}
	p.found = f
	s := c.judge(ctx, p, begun)
	return f.State == lease.Present && f.Header.ID == p.fill && !s.negative && (s.standing == fresh || s.standing == stale)
}
