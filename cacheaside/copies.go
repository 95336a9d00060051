package cacheaside

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/client/localview"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// held is a local copy: a value or a remembered miss, and what is known about it.
type held[V any] struct {
	value         V
	fill          record.ID     // which fill it is a copy of; zero if another program wrote it
	freshTo, ends int64         // by the local tier's clock: fresh up to, kept by Redis up to
	fresh, cost   time.Duration // for how long it was fresh at first, what a load of it took
	negative      bool
}

// heldCost is roughly what a copy takes in addition to its value.
const heldCost = 64

// keepCopy keeps a copy of what was read under ticket t, if it is fresh and has an end.
func (c *Cache[K, V]) keepCopy(key string, t localsync.Ticket, f lease.Found, s *sight[V]) {
	left := f.Left - f.Header.Window
	if c.local == nil || s.standing != fresh || left <= 0 || f.Left <= 0 {
		return
	}
	h := held[V]{
		value: localview.Cloned(c.ns.Clone, s.entry.Value), fill: f.Header.ID, freshTo: t.End(left), ends: t.End(f.Left),
		fresh: f.Header.Fresh, cost: f.Header.Cost, negative: s.negative,
	}
	if f.Kind == record.Plain {
		h.fresh = c.ns.TTL
	}
	size := len(f.Raw)
	if c.ns.Cost != nil && !s.negative {
		size = c.ns.Cost(s.entry.Value)
	}
	c.local.Insert(key, t, h, heldCost+int64(size), left)
}

// entry returns what is known about the copy at now.
func (h *held[V]) entry(now int64) Entry[V] {
	e := Entry[V]{Value: h.value, Outcome: mayfly.OutcomeHitLocal, Fresh: millis(h.freshTo - now), TTL: millis(h.ends - now)}
	if h.fill != (record.ID{}) {
		e.Age = max(h.fresh-e.Fresh, 0)
	}
	return e
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// atHand returns the local copy of key's value, or nil, and the time that its end is judged by.
func (c *Cache[K, V]) atHand(key K) (h *held[V], now int64) {
	if c.works.Err() != nil {
		return nil, 0
	}
	return c.local.At(key)
}

// hit returns the local copy of key's value. In the second half of its life it checks whether a renewal is due, and starts one.
func (c *Cache[K, V]) hit(ctx context.Context, key K, load loader[K, V]) (v V, negative, ok bool) {
	h, now := c.atHand(key)
	if h == nil || h.negative {
		return v, h != nil, h != nil
	}
	if left := millis(h.freshTo - now); left < h.fresh/2 && c.opt.Early.Due(h.fresh, left, h.cost, rand.Float64()) {
		c.renewCopied(ctx, key, h.fill, load)
	}
	return localview.Cloned(c.ns.Clone, h.value), false, true
}

// renewCopied renews what this process has a copy of.
func (c *Cache[K, V]) renewCopied(ctx context.Context, key K, fill record.ID, load loader[K, V]) {
	if full, err := c.ns.FullKey(key); err == nil {
		c.renew(ctx, loading[K, V]{c: c, key: key, full: full, loader: load, copied: &fill})
	}
}
