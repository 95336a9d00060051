package httpcache

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Tags are purged by barriers. The purge draws a version, greater than every one before, and writes it as the barrier of each tag. A
// response carries the version that was the latest when the handler was called, and is void if a barrier of one of its
// tags is newer. So a purge costs one write per tag, however many responses have the tag, and also voids those that are still
// being loaded. A response with tags costs a look at their barriers, which the local tier keeps copies of.
//
// The version follows the clock of the Redis server and is never ahead of it, so later purges still draw greater versions after its key was lost.

func (c *Cache) epochKey() string { return c.prefix + "purges" }

func (c *Cache) appendTagKey(dst []byte, tag string) []byte {
	return append(append(append(dst, c.prefix...), "tag "...), tag...)
}

// A barrier must outlive every page that it voids, also pages of processes whose Namespace.TTL is longer than the purger's. So the version's
// key lives at least as long as any page that may be stored by now: each process prolongs it, if necessary, before it calls a handler. A process
// that draws a version learns how long the key lives, and gives the barriers the same lifetime.

// life is longer than that of any response that this process has requested by now.
func (c *Cache) life() time.Duration { return c.ns.TTL + 2*c.opt.SharedTimeout }

// draw draws a version or, with only, returns the latest. Either way its key outlives all responses that this process has requested by now.
func (c *Cache) draw(ctx context.Context, only bool) (lease.Drawn, error) {
	key, life := c.epochKey(), c.life()
	form := lease.Value{Key: key, TTL: life + life/4} // the key is prolonged now and then, not by every process each second
	var err error
	if form.Bytes, err = (item{}).encode(record.NewID(), form.TTL); err != nil {
		return lease.Drawn{}, err
	}
	d, err := c.guard.Draw(ctx, form, life, only)
	c.local.Changed(ctx, key)
	c.epochs.until.Store(0)
	return d, err
}

// purgeTags purges tags, and returns those that it has not purged.
func (c *Cache) purgeTags(ctx context.Context, tags []string) (left []string, err error) {
	if len(tags) == 0 {
		return nil, nil
	}
	drawn, err := c.draw(ctx, false)
	if err != nil {
		return tags, err
	}
	keys, values := c.tagKeys(tags), make([]lease.Value, len(tags))
	for i, key := range keys {
		rec, err := item{barrier: drawn.Number}.encode(record.NewID(), drawn.Left)
		if err != nil {
			return tags, err
		}
		values[i] = lease.Value{Key: key, Bytes: rec, TTL: drawn.Left}
	}
	c.forget(removal{tags: tags})
	errs := c.guard.Raise(ctx, values)
	c.flights.ForgetAll()
	c.local.Changed(ctx, keys...)
	for i, err := range errs {
		if err != nil {
			left = append(left, tags[i])
		}
	}
	return left, summary(errs)
}

// barriersAtHand says what this process's copies tell about the barriers of r's tags: whether one voids r, or otherwise the keys of the
// barriers without a copy. It does not allocate if it has a copy of each.
func (c *Cache) barriersAtHand(r *response) (void bool, missing []string) {
	for _, tag := range r.tags {
		var room [256]byte
		key := c.appendTagKey(room[:0], tag)
		if c.isTagUnremoved(key) {
			return true, nil
		}
		switch at := c.local.AtFull(key); {
		case at == nil:
			missing = append(missing, string(key))
		case c.isNewer(at.barrier, r.epoch):
			return true, nil
		}
	}
	return false, missing
}

// isNewer reports whether a barrier voids a response that was requested at a version. A barrier beyond the latest version that this process knows
// shows that there is a later version: with the old one the next response would be void as well.
func (c *Cache) isNewer(barrier, version int64) bool {
	if barrier <= version {
		return false
	}
	if barrier > c.epochs.version.Load() {
		c.epochs.until.Store(0)
	}
	return true
}

// purged reports whether one of a response's tags was purged after the response was requested.
func (c *Cache) purged(ctx context.Context, r *response) (bool, error) {
	void, missing := c.barriersAtHand(r)
	if void || len(missing) == 0 {
		return void, nil
	}
	for _, a := range c.lookTags(ctx, missing) {
		if a.Err != nil {
			return true, a.Err
		}
		if c.isNewer(decode(a.Found).barrier, r.epoch) {
			return true, nil
		}
	}
	return false, nil
}

// lookTags reads barriers. It keeps copies of them, and remembers which are absent.
func (c *Cache) lookTags(ctx context.Context, keys []string) []lease.Answer {
	tickets := make([]localsync.Ticket, len(keys))
	for i, key := range keys {
		tickets[i] = c.local.Begin(key)
	}
	answers := c.guard.LookMany(ctx, keys, false)
	now := time.Now().UnixMilli()
	for i, a := range answers {
		switch it := decode(a.Found); {
		case a.Err != nil:
		case it.barrier != 0:
			c.keepCopy(keys[i], tickets[i], it, now)
		case a.State == lease.Absent:
			c.local.Insert(keys[i], tickets[i], item{found: lease.Found{State: lease.Absent}}, 0, c.ns.TTL)
		}
	}
	return answers
}

// epochs is the latest version of the purges that this process knows. An outdated version is harmless: a response that carries it is void
// too early, never too late.
type epochs struct {
	reads   singleflight.Group
	version atomic.Int64
	until   atomic.Int64 // unix ms
}

const (
	unknown   = -1 // Redis did not tell it
	epochLife = time.Second
)

// at returns the version for an answer that is requested from the handler now. ctx has a deadline.
func (e *epochs) at(ctx context.Context, c *Cache) int64 {
	if len(c.opt.TagFields) == 0 {
		return 0
	}
	now := time.Now().UnixMilli()
	if until := e.until.Load(); now < until {
		return e.version.Load()
	}
	version, err, _ := e.reads.Do("", func() (any, error) { // with the time, and without the end, of who is first
		at, _ := ctx.Deadline()
		ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), at)
		defer cancel()
		var it item
		_, err := c.see(ctx, c.epochKey(), &it)
		version := it.barrier
		if err == nil && it.ends-now < c.life().Milliseconds() {
			version, err = c.lastVersion(ctx)
		}
		if err == nil {
			e.version.Store(version)
			e.until.Store(now + epochLife.Milliseconds())
		}
		return version, err
	})
	if err != nil {
		return unknown
	}
	return version.(int64)
}

// lastVersion makes the version's key live as long as this process's pages, and returns the version. If ctx ends first, the work continues for
// the benefit of a later request.
func (c *Cache) lastVersion(ctx context.Context) (version int64, err error) {
	type result struct {
		lease.Drawn
		err error
	}
	done := make(chan result, 1)
	if !c.works.Start(func() {
		d, err := c.draw(nodes.Within(context.WithoutCancel(ctx), c.opt.RedisTimeout), true)
		done <- result{d, err}
	}) {
		return 0, mayfly.ErrClosed
	}
	select {
	case r := <-done:
		return r.Number, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
