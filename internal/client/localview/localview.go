// Package localview is one namespace's part of the local tier: its copies, under its own keys. Every pattern that keeps copies follows this
// order:
//
//	view.Forget(k)              before a write is sent, and view.Changed(k) after its reply
//
// So a copy is never older than the last change that this process has heard of, and the process has heard of its own changes.
package localview

import (
	"context"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/mayflycache/mayfly/internal/client/localsync"
)

// View holds the copies, of type C, of a namespace with keys of type K. A nil View holds none and accepts none.
type View[K comparable, C any] struct {
	*localsync.Local
	copies *localstore.Values[C]
	prefix string
	form   keyform.Form[K]
	plain  bool // the text of a key depends only on its type
	hits   func() uint64
}

// Of returns the view of a namespace, or nil if the namespace has no local tier. hits counts the answers from it; nil counts the copies
// that are found.
func Of[C any, K comparable, V any](ns mayfly.Namespace[K, V], hits func() uint64) *View[K, C] {
	if ns.Local == nil {
		return nil
	}
	form, _ := keyform.Of(ns.Key) // its error is one of Validate's
	local := localsync.Of(ns.Local)
	v := &View[K, C]{local, localstore.NewValues[C](local.Store()), ns.Prefix, form, ns.Key == nil, hits}
	if hits == nil {
		v.hits = v.copies.Hits()
	}
	if o, ok := ns.Observer.(interface {
		ObserveLocal(namespace string, hits func() uint64)
	}); ok {
		o.ObserveLocal(ns.Name, v.hits)
	}
	return v
}

// Hits returns the number of answers from the view so far.
func (v *View[K, C]) Hits() uint64 {
	if v == nil {
		return 0
	}
	return v.hits()
}

// At returns the copy under key, or nil, and the time that deadlines of copies are compared with. It allocates nothing for keys of the most
// common types and emits no event: the view counts its hits.
func (v *View[K, C]) At(key K) (c *C, now int64) {
	now = v.Now()
	if !v.Trusted(now) {
		return nil, now
	}
	if v.plain {
		var room [96]byte
		if full, ok := keyform.AppendPlain(append(room[:0], v.prefix...), key); ok {
			return v.copies.At(full, now), now
		}
	}
	full, err := v.form([]byte(v.prefix), key)
	if err != nil {
		return nil, now
	}
	return v.copies.At(full, now), now
}

// AtFull is At for the key as Redis knows it.
func (v *View[K, C]) AtFull(full []byte) *C {
	if v == nil {
		return nil
	}
	now := v.Now()
	if !v.Trusted(now) {
		return nil
	}
	return v.copies.At(full, now)
}

// Begin draws a ticket for a read of full that follows.
func (v *View[K, C]) Begin(full string) localsync.Ticket {
	if v == nil {
		return localsync.Ticket{}
	}
	return v.Local.Begin(full)
}

// Insert keeps a copy, of cost bytes, of what was read under ticket t with left to live. When the clock of Redis is set back, the time left
// that it reports grows. So a pattern that knows how long its values live at most passes no more than that.
func (v *View[K, C]) Insert(full string, t localsync.Ticket, c C, cost int64, left time.Duration) {
	if v != nil && left > 0 {
		localsync.Insert(v.Local, v.copies, full, t, c, cost, left)
	}
}

// Forget drops copies before a write is sent.
func (v *View[K, C]) Forget(fulls ...string) {
	if v != nil {
		v.Local.Forget(fulls...)
	}
}

// Changed drops what was copied during a write, and announces the change to other processes if the server does not.
func (v *View[K, C]) Changed(_ context.Context, fulls ...string) {
	if v != nil {
		v.Local.Changed(fulls...)
	}
}

// ForgetAll is Forget for every key that begins with prefix.
func (v *View[K, C]) ForgetAll(prefix string) {
	if v != nil {
		v.Local.ForgetAll(prefix)
	}
}

// ChangedAll is Changed for every key that begins with prefix.
func (v *View[K, C]) ChangedAll(_ context.Context, prefix string) {
	if v != nil {
		v.Local.ChangedAll(prefix)
	}
}

// Clear drops all copies of the view.
func (v *View[K, C]) Clear() {
	if v != nil {
		v.copies.Clear()
	}
}

// Cloned returns what clone makes of v, or v itself if clone is nil.
func Cloned[V any](clone func(V) V, v V) V {
	if clone == nil {
		return v
	}
	return clone(v)
}
