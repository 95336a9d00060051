package sliding

import (
	"context"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/mayflycache/mayfly/internal/client/localsync"
)

// near is a store's part of the local tier; nil is none. A copy ends when an access would have to renew the value, so that who
// is served a copy is not logged out by it.
type near[V any] struct {
	tier   *localsync.Local
	view   *localstore.Values[V]
	prefix string
	custom bool // the namespace has a Key function
	clone  func(V) V
	cost   func(V) int
}

func newNear[K comparable, V any](ns mayfly.Namespace[K, V]) *near[V] {
	if ns.Local == nil {
		return nil
	}
	t := ns.Local.Synced()
	view := localstore.NewValues[V](t.Store())
	if o, ok := ns.Observer.(mayfly.LocalObserver); ok {
		o.ObserveLocal(ns.Name, view.Hits())
	}
	return &near[V]{t, view, ns.Prefix, ns.Key != nil, ns.Clone, ns.Cost}
}

// hit returns the copy of key's value. For keys of the commonest types it allocates nothing.
func hit[K comparable, V any](s *Store[K, V], key K) (v V, ok bool) {
	n := s.near
	now := n.tier.Now()
	if !n.tier.Trusted(now) {
		return v, false
	}
	var room [96]byte
	if full, plain := keyform.AppendPlain(append(room[:0], n.prefix...), key); plain && !n.custom {
		v, _, ok = n.view.GetBytes(full, now)
	} else if full, err := s.room.FullKey(key); err == nil {
		v, _, ok = n.view.Get(full, now)
	}
	if ok && n.clone != nil {
		v = n.clone(v)
	}
	return v, ok
}

// begin draws a ticket for the read of key that follows.
func (n *near[V]) begin(key string) (t localsync.Ticket) {
	if n != nil {
		t = n.tier.Begin(key)
	}
	return t
}

// insert keeps a copy for life, which began when the ticket was drawn.
func (n *near[V]) insert(key string, t localsync.Ticket, v V, size int, life time.Duration) {
	if n == nil || life <= 0 {
		return
	}
	if n.cost != nil {
		size = n.cost(v)
	}
	if n.clone != nil {
		v = n.clone(v)
	}
	localsync.Insert(n.tier, n.view, key, t, v, int64(size), life)
}

// forget drops copies before a write is sent.
func (n *near[V]) forget(keys ...string) {
	if n != nil {
		n.tier.Forget(keys...)
	}
}

// changed drops what was copied during the write, and tells other processes where the server does not.
func (n *near[V]) changed(ctx context.Context, keys ...string) {
	if n != nil {
		n.tier.Changed(ctx, keys...)
	}
}
