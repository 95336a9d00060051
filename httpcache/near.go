package httpcache

import (
	"context"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/mayflycache/mayfly/internal/client/localsync"
)

// near is this cache's part of the local tier; nil is none. What the cache keeps to is said in cacheaside: a ticket before
// Redis is read, the copy after it and never after a write, and around each write what makes copies of the old worthless.
type near struct {
	tier   *localsync.Local
	view   *localstore.Values[item]
	prefix string
}

// newNear returns nil for a namespace without a local tier. hits counts what is answered from it: to the tier itself, a hit is
// two or three reads.
func newNear(ns mayfly.Namespace[string, []byte], hits func() uint64) *near {
	if ns.Local == nil {
		return nil
	}
	if o, ok := ns.Observer.(mayfly.LocalObserver); ok {
		o.ObserveLocal(ns.Name, hits)
	}
	t := ns.Local.Synced()
	return &near{t, localstore.NewValues[item](t.Store()), ns.Prefix}
}

// at returns the copy of what is under key, or nil.
func (n *near) at(key []byte) *item {
	if n == nil {
		return nil
	}
	now := n.tier.Now()
	if !n.tier.Trusted(now) {
		return nil
	}
	return n.view.At(key, now)
}

// begin draws a ticket for the read of key that follows.
func (n *near) begin(key string) localsync.Ticket {
	if n == nil {
		return localsync.Ticket{}
	}
	return n.tier.Begin(key)
}

// insert keeps a copy of what was read under ticket t at now, in unix milliseconds.
func (n *near) insert(key string, t localsync.Ticket, it item, now int64) {
	if left := it.ends - now; n != nil && it.usable() && left > 0 {
		localsync.Insert(n.tier, n.view, key, t, it, it.weight(), millis(left))
	}
}

// insertAbsence keeps for ttl that there is nothing under key.
func (n *near) insertAbsence(key string, t localsync.Ticket, ttl int64) {
	if n != nil {
		localsync.Insert(n.tier, n.view, key, t, item{found: lease.Found{State: lease.Absent}}, 0, millis(ttl))
	}
}

func (n *near) forget(keys ...string) {
	if n != nil {
		n.tier.Forget(keys...)
	}
}

func (n *near) changed(ctx context.Context, keys ...string) {
	if n != nil {
		n.tier.Changed(ctx, keys...)
	}
}

func (n *near) forgetAll(prefix string) {
	if n != nil {
		n.tier.ForgetAll(prefix)
	}
}

func (n *near) changedAll(ctx context.Context, prefix string) {
	if n != nil {
		n.tier.ChangedAll(ctx, prefix)
	}
}
