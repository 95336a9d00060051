package cacheaside

import (
	"bytes"
	"context"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// sight is what was found under a key, as far as this cache can use it.
type sight[V any] struct {
	standing standing
	negative bool // a remembered miss; standing is fresh
	due      bool // fresh, and to be renewed now
	entry    Entry[V]
	err      error // why it is unusable, where that is worth telling
}

// servable reports whether what was found can be handed out at once.
func (s *sight[V]) servable() bool { return s.standing == fresh || s.standing == stale }

// standing says what may be done with what was found.
type standing uint8

const (
	unusable standing = iota // to be loaded
	fresh                    // to be served
	stale                    // to be served, and renewed in the background
	fallback                 // to be loaded, and served if that fails
)

// clockSlack is by how much a value may seem to outlive the TTL it was given.
const clockSlack = time.Second

// doubts reports whether PTTL is to be asked before f, which was found without it, is judged: its header may be wrong. Another program may have given
// the key another TTL, or the server another clock. That nothing is left is for Redis to say, by not having the key; so what has time left and is not
// due is handed out, and for all else Redis is asked first. draw is that of the judgement that follows.
func (c *Cache[K, V]) doubts(f lease.Found, draw float64) bool {
	h, left := f.Header, f.Reckoned
	switch {
	case f.State != lease.Present || f.Left != 0:
		return false
	case f.Kind == record.Plain: // tells nothing
		return c.glance
	case f.Kind != record.Value:
		return false
	case h.Window > 0: // stored by a process with a stale window: is it over?
		return true
	case !c.glance:
		return false
	case left <= 0 || left > h.Fresh+clockSlack:
		return true
	}
	return h.Flags&record.Negative == 0 && c.opt.Early.Due(h.Fresh, left, h.Cost, draw)
}

// ascertain asks for the TTL of what was found without it. If Redis does not answer that any more, what it had a moment ago is handed out, and
// nothing is done because of it; but what a process with a stale window has stored may be over. What has come to its end in between is handed
// out too, as the caller was there in time; it is the next reader who loads.
func (c *Cache[K, V]) ascertain(ctx context.Context, full string, f lease.Found) (lease.Found, error) {
	rest, cancel, worth := c.rest(ctx, f)
	defer cancel()
	if !worth {
		return f, nil
	}
	now, err := c.guard.Look(rest, full, true)
	return c.ascertained(ctx, full, f, lease.Answer{Found: now, Err: err})
}

// rest returns a context for what is left of RedisTimeout after f was found. worth is false if that is too little for an optional
// question: one that is cut off costs its connection. Then the next read asks everything in one trip, because lease.Glance remembers
// that this one took long.
func (c *Cache[K, V]) rest(ctx context.Context, f lease.Found) (rest context.Context, cancel context.CancelFunc, worth bool) {
	left := c.opt.RedisTimeout - f.Spent
	worth = left >= 2*f.Spent
	if f.Header.Window > 0 { // nothing can be said of it without
		left, worth = c.opt.RedisTimeout, true
	}
	rest, cancel = context.WithTimeout(ctx, left)
	return rest, cancel, worth
}

func (c *Cache[K, V]) ascertained(ctx context.Context, full string, f lease.Found, now lease.Answer) (lease.Found, error) {
	now.Spent += f.Spent
	if now.Err == nil && now.State == lease.Absent && f.Header.Window == 0 { // it came to its end between the two: good for this once
		f.Left, f.Spent = lease.Gone, now.Spent
		return f, nil
	}
	if now.Err == nil || f.Header.Window > 0 {
		return now.Found, now.Err
	}
	if ctx.Err() == nil {
		c.tell.Backend(ctx, full, now.Err)
	}
	f.Spent = now.Spent
	return f, nil
}

// see judges what was found. draw decides whether it is due. With keep, or if something is to be loaded because of it, or if only its bytes tell it
// from another value, those of f stay as they are: otherwise the value has them.
func (c *Cache[K, V]) see(f lease.Found, draw float64, keep bool) (s sight[V]) {
	if f.State != lease.Present {
		return s
	}
	switch h := f.Header; {
	case f.Kind == record.Alien, f.Kind == record.Session:
		return s
	case f.Kind == record.Value && c.ns.Plain:
		return s // left from a time when the namespace was not plain
	case f.Kind == record.Value && f.Left > h.Fresh+h.Window+clockSlack:
		return s // Redis's clock was set back, and nobody knows how old it is
	case f.Kind == record.Value && h.Flags&record.Negative != 0:
		return sight[V]{standing: fresh, negative: true}
	case f.Kind == record.Value && h.Format != c.format:
		return s
	}
	if s = c.weigh(f, draw); s.standing == unusable {
		return s
	}
	v, err := c.value(f, keep || s.due || s.standing != fresh || f.Kind == record.Plain)
	if err != nil {
		return sight[V]{err: err}
	}
	s.entry.Value = v
	return s
}

// value returns the value of what was found. With keep, the bytes of f stay as they are, whatever the codec does to its own and whoever gets the value.
func (c *Cache[K, V]) value(f lease.Found, keep bool) (v V, err error) {
	body := f.Body
	switch {
	case f.Header.Flags&record.Compressed != 0:
		if body, err = decompress(body); err != nil {
			return v, err
		}
	case keep:
		body = bytes.Clone(body)
	}
	return c.decode(body)
}

// weigh judges a value by its age.
func (c *Cache[K, V]) weigh(f lease.Found, draw float64) (s sight[V]) {
	h := f.Header
	if f.Kind == record.Plain {
		h.Fresh = c.ns.TTL
	}
	s.standing = fresh
	s.entry.Outcome = mayfly.OutcomeHitRedis
	if f.Left <= 0 { // not asked, without end, or gone since: good for this once
		return s
	}
	s.entry.TTL = f.Left
	s.entry.Fresh = f.Left - h.Window
	if f.Kind == record.Value {
		s.entry.Age = max(h.Fresh-s.entry.Fresh, 0)
	}
	switch late := -s.entry.Fresh; {
	case late < 0:
		s.due = c.opt.Early.Due(h.Fresh, s.entry.Fresh, h.Cost, draw)
	case late < c.opt.StaleWhile:
		s.standing, s.entry.Outcome = stale, mayfly.OutcomeStale
	case late < c.opt.StaleIfError:
		s.standing, s.entry.Outcome = fallback, mayfly.OutcomeStale
	default:
		s.standing = unusable
	}
	return s
}
