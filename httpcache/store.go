package httpcache

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	random "math/rand/v2"
	"slices"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// keepAnswer starts storing r while the client still receives it, and releases the waiters. The returned function waits until r is
// stored, so that a request sent after the answer finds it, but no longer than the rest of RedisTimeout.
func (c *Cache) keepAnswer(ctx context.Context, s sight, fill filling, r *response, body *held, spent time.Duration) (wait func()) {
	out := outcome{response: r, held: body}
	if !fill.stores() {
		fill.land(out, false)
		return func() {}
	}
	late := fill.closes()
	fill.beat.used()
	done := make(chan struct{}, 2)
	patience := time.AfterFunc(max(c.opt.RedisTimeout-spent, 0), func() { fill.land(out, false); done <- struct{}{} })
	ctx = context.WithoutCancel(ctx)
	body.use()
	started := c.works.Start(func() {
		defer func() { fill.stop(); body.done(); done <- struct{}{} }()
		kept := false
		defer func() { fill.land(out, kept) }()
		defer patience.Stop()
		ctx, cancel := c.works.On(ctx)
		defer cancel()
		begun := time.Now()
		stored, err := false, error(nil)
		if fill.passed != nil {
			s.found = <-fill.passed
		}
		if fill.passed == nil || s.found.State == lease.Present { // otherwise the claim was voided
			stored, err = c.put(ctx, s, fill.claim, r)
		}
		e := mayfly.Event{Kind: mayfly.KindFill, Key: s.slot, N: len(r.body), Err: err}
		switch {
		case err != nil:
			if errors.Is(err, errNoRoom) {
				e.Outcome = mayfly.OutcomeDropped
			}
			defer c.drop(ctx, fill.claim) // whatever happens, nobody must keep waiting for our lease
		case !stored:
			e.Outcome = mayfly.OutcomeRefused
		default:
			c.stats.stored.Add(1)
			kept = late && c.stands(ctx, s, r)
		}
		c.tell.Done(ctx, e, begun)
	})
	if !started {
		body.done()
		patience.Stop()
		c.release(ctx, fill.claim)
		fill.land(out, false)
		return func() {}
	}
	return func() { <-done }
}

// stands reports whether r, which was just stored, has not been purged since it was loaded. For a response under its resource's own key, the
// successful store proves that. It proves nothing about r's tags, which have barriers, or about a variant, which only its index leads to.
func (c *Cache) stands(ctx context.Context, s sight, r *response) bool {
	var keys []string
	for _, tag := range r.tags {
		keys = append(keys, string(c.appendTagKey(nil, tag)))
	}
	variant := s.index != nil && slices.Equal(s.index.index.fields, r.fields)
	if variant {
		keys = append(keys, s.key)
	}
	answers := c.guard.LookMany(ctx, keys, false)
	for i, a := range answers {
		it := decode(a.Found)
		switch {
		case a.Err != nil:
			return false
		case i < len(r.tags):
			if it.barrier > r.epoch {
				return false
			}
		case it.index == nil || it.index.generation != s.index.index.generation:
			return false
		}
	}
	return true
}

// put stores r, unless the place that was claimed for it has been voided or replaced in the meantime:
//
//	it does not vary         in the place of the claim
//	the first that varies    under a new index, which takes the place of the claim; the variant is written first, since nobody finds it yet
//	one more variant         in the place of the claim, if the index has room for it
//	it varies otherwise      under a new index in place of the old one, whose variants go with it
func (c *Cache) put(ctx context.Context, s sight, claim *lease.Claim, r *response) (stored bool, err error) {
	now := time.Now()
	ttl := min(r.policy.Keep(now), c.ns.TTL-now.Sub(r.policy.Received))
	if ttl < check.MinTTL {
		return false, c.drop(ctx, claim)
	}
	defer func() { c.local.Changed(ctx, s.key, s.slot) }()
	if elsewhere, stored, err := c.ledElsewhere(ctx, s, r, ttl); elsewhere {
		return stored, errors.Join(err, c.drop(ctx, claim))
	}
	switch {
	case s.index == nil && len(r.fields) == 0:
		return c.write(ctx, s.key, s.found, claim, item{response: r}, ttl)
	case s.index != nil && slices.Equal(s.index.index.fields, r.fields):
		if ok, err := c.list(ctx, &s, ttl); !ok {
			return false, errors.Join(err, c.drop(ctx, claim))
		}
		return c.write(ctx, s.slot, s.found, claim, item{response: r}, ttl)
	}
	seen, onKey := s.found, claim
	var old, next *index
	if s.index != nil { // the claim is on the slot of a variant
		seen, onKey, old = s.index.found, nil, s.index.index
	}
	it := item{response: r}
	if len(r.fields) > 0 {
		if next, err = c.putVariant(ctx, s.key, r, ttl); err != nil {
			return false, errors.Join(err, c.drop(ctx, claim))
		}
		it, ttl = item{index: next}, c.ns.TTL
	}
	stored, err = c.write(ctx, s.key, seen, onKey, it, ttl)
	c.settle(ctx, s.key, stored, old, next)
	if s.index != nil {
		err = errors.Join(err, c.drop(ctx, claim))
	}
	return stored, err
}

// settle removes variants that nothing leads to any more: those of the old index if it was replaced, and otherwise those of the new one.
func (c *Cache) settle(ctx context.Context, key string, replaced bool, old, next *index) {
	gone := next
	if replaced {
		gone = old
	}
	if gone == nil {
		return
	}
	if err := c.remove(ctx, gone.slots(key, gone.variants)...); err != nil {
		c.tell.Backend(ctx, key, err)
	}
}

// remove removes what is stored under keys, in this process and in Redis.
func (c *Cache) remove(ctx context.Context, keys ...string) error {
	c.local.Forget(keys...)
	err := errors.Join(c.guard.Delete(ctx, keys)...)
	c.local.Changed(ctx, keys...)
	return err
}

// drop gives up a claim that was not filled.
func (c *Cache) drop(ctx context.Context, claim *lease.Claim) error {
	if claim == nil {
		return nil
	}
	return claim.Release(ctx)
}

// write stores it under key, in place of the claim or, without a claim, of the record that was seen. Without a claim and a record it stores nothing,
// because it could not tell whether the answer was purged after it was loaded.
func (c *Cache) write(ctx context.Context, key string, seen lease.Found, claim *lease.Claim, it item, ttl time.Duration) (bool, error) {
	if claim == nil && seen.State != lease.Present {
		return false, nil
	}
	id := record.NewID()
	if claim != nil {
		id = claim.ID()
	}
	rec, done, err := c.encode(it, id, ttl)
	if err != nil {
		return false, err
	}
	defer done()
	if claim != nil {
		return claim.Fill(ctx, rec, ttl)
	}
	return c.guard.Replace(ctx, key, seen, rec, ttl)
}

// putVariant stores r under a new index, and returns that index, which is not yet in place.
func (c *Cache) putVariant(ctx context.Context, key string, r *response, ttl time.Duration) (*index, error) {
	var generation [8]byte
	rand.Read(generation[:]) // never fails
	name := variantName(r.variant)
	ix := &index{generation: hex.EncodeToString(generation[:]), fields: r.fields, variants: []string{name}}
	rec, done, err := c.encode(item{response: r}, record.NewID(), ttl)
	if err != nil {
		return nil, err
	}
	defer done()
	return ix, c.guard.Set(ctx, []lease.Value{{Key: ix.slot(key, name), Bytes: rec, TTL: ttl}})[0]
}

// listTries bounds the retries after another process changed the index first. listPause bounds the random pause before a retry, which starts at a
// millisecond: without it variants stored at the same time would collide again and again.
const (
	listTries = 24
	listPause = 128 * time.Millisecond
)

// list adds the variant of s to its index, and makes the index outlive the variant. If there is no room, the oldest variant is dropped.
// It reports false if the index was replaced or removed.
func (c *Cache) list(ctx context.Context, s *sight, ttl time.Duration) (ok bool, err error) {
	it, until := *s.index, time.Now().Add(ttl).UnixMilli()
	for try := range listTries {
		if slices.Contains(it.index.variants, s.name) && it.ends >= until {
			return true, nil
		}
		next := *it.index
		next.variants = slices.Clone(next.variants)
		var leaves []string
		if !slices.Contains(next.variants, s.name) {
			next.variants = append(next.variants, s.name)
			over := max(len(next.variants)-c.opt.MaxVariants, 0)
			leaves, next.variants = next.slots(s.key, next.variants[:over]), next.variants[over:]
		}
		ok, err = c.write(ctx, s.key, it.found, nil, item{index: &next}, c.ns.TTL)
		if err != nil {
			return false, err
		}
		if ok {
			if len(leaves) > 0 {
				err = c.remove(ctx, leaves...)
				c.tellLeft(ctx, s.key, len(leaves))
			}
			return err == nil, err
		}
		select {
		case <-time.After(random.N(min(time.Millisecond<<try, listPause))):
		case <-ctx.Done():
			return false, ctx.Err()
		}
		f, err := c.guard.Look(ctx, s.key, false)
		if err != nil {
			return false, err
		}
		if it = decode(f); it.index == nil || it.index.generation != s.index.index.generation {
			return false, nil
		}
	}
	return false, nil
}

// storePass records for ttl, in place of the claim, that the answers for a slot are not for others. It returns the record that is there now, or
// nothing if the claim was voided in the meantime or if Redis does not answer.
func (c *Cache) storePass(ctx context.Context, slot string, claim *lease.Claim, ttl time.Duration) (passed lease.Found) {
	defer c.local.Changed(ctx, slot)
	ttl = min(ttl, c.ns.TTL)
	rec, err := item{pass: true}.encode(claim.ID(), ttl)
	stored := false
	if err == nil {
		stored, err = claim.Fill(ctx, rec, ttl)
	}
	if err != nil {
		claim.Release(ctx)
		c.passes.Add(slot, ttl) // so that this process does not wait for a lease that nobody prolongs
	}
	if !stored {
		return lease.Found{}
	}
	return written(rec)
}

// written returns what a look finds after rec was written.
func written(rec []byte) lease.Found {
	f := lease.Found{State: lease.Present, Raw: rec}
	f.Kind, f.Header, f.Body = record.Parse(rec)
	return f
}
