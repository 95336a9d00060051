package httpcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// If Redis did not do a removal, or may not have done it, the cache remembers the removal and repeats it until it is done. That holds for purges
// and for what a request has changed. Until then this Cache serves nothing that the removal names, neither from Redis nor from its copies. A repeated
// removal may void too much, including what was stored in the meantime, but never too little.
//
// Resources and tags are remembered by their keys, which never coincide: a tag's key has a space where no resource's key has one. Prefixes are
// kept in a queue of their own, because they are found by comparison.

// removal names what is to be voided: resources by their keys, tags and groups by their names, and whatever lies under common beginnings of keys.
type removal struct{ urls, tags, under []string }

func (r removal) len() int { return len(r.urls) + len(r.tags) + len(r.under) }

// errUnremoved says that Redis may still hold, under some key, what must not be served.
var errUnremoved = errors.New("a removal has not been done yet")

// void voids what r names. It returns how many keys were removed, which part of r has to be repeated, and which part the server refuses
// permanently. The parts run in parallel, so a Redis that does not answer costs the time of one. within bounds the round trips of each part.
func (c *Cache) void(ctx context.Context, r removal, within func(context.Context) context.Context) (found int, left, refused removal, err error) {
	var errs [3]error
	below := 0
	parts := []func(){
		func() { found, left.urls, errs[0] = c.purgeKeys(within(ctx), r.urls) },
		func() { left.tags, errs[1] = c.purgeTags(within(ctx), r.tags) },
		func() { below, left.under, errs[2] = c.purgePrefixes(ctx, r.under) },
	}
	if r.len() == max(len(r.urls), len(r.tags), len(r.under)) { // of one kind
		for _, part := range parts {
			part()
		}
	} else {
		var works sync.WaitGroup
		for _, part := range parts {
			works.Go(part)
		}
		works.Wait()
	}
	for i, part := range [][2]*[]string{{&left.urls, &refused.urls}, {&left.tags, &refused.tags}, {&left.under, &refused.under}} {
		if nodes.RefusedForGood(errs[i]) {
			*part[0], *part[1] = nil, *part[0]
		}
	}
	return found + below, left, refused, errors.Join(errs[:]...)
}

// removed is void for a caller that gets the error. It remembers what failed, and the error says so.
func (c *Cache) removed(ctx context.Context, r removal) (found int, err error) {
	resources, beginnings := c.unremoved.Mark(), c.unswept.Mark()
	found, left, refused, err := c.void(ctx, r, func(ctx context.Context) context.Context { return nodes.Within(ctx, c.opt.RedisTimeout) })
	if err == nil {
		c.unremoved.Remove(resources, slices.Concat(r.urls, c.tagKeys(r.tags))...)
		c.unswept.Remove(beginnings, r.under...)
		return found, nil
	}
	forgotten := c.remember(ctx, left, err)
	if n := refused.len(); n > 0 {
		c.unremoved.Remove(resources, slices.Concat(refused.urls, c.tagKeys(refused.tags))...)
		c.unswept.Remove(beginnings, refused.under...)
		c.tell.Dropped(ctx, n, err)
		err = fmt.Errorf("%w: the server refuses %d of its keys permanently, which is not repeated: allow what docs/operations.md lists, and purge again", err, n)
	}
	switch {
	case left.len() == 0:
		return found, err
	case c.works.Err() != nil:
		return found, fmt.Errorf("%w: the cache is closed, and does not repeat it", err)
	case forgotten > 0:
		return found, fmt.Errorf("%w: %d of its keys are not remembered, since Options.Unremoved (%d) are already: purge again", err, forgotten, c.opt.Unremoved)
	}
	return found, fmt.Errorf("%w: it is repeated until Redis does it, and until then this Cache serves none of it", err)
}

// remember schedules another attempt for what could not be voided, and returns how many of its keys there is no room for.
func (c *Cache) remember(ctx context.Context, left removal, why error) (forgotten int) {
	keys := slices.Concat(left.urls, c.tagKeys(left.tags))
	if c.opt.NoVarySearch { // it is not known where else an answer lies
		for _, key := range left.urls {
			keys = append(keys, c.pathKey(key))
		}
	}
	ctx = context.WithoutCancel(ctx)
	forgotten = c.unremoved.Add(ctx, why, keys...) + c.unswept.Add(ctx, why, left.under...)
	c.forget(left) // what was read between the attempt and now
	return forgotten
}

// forget keeps later requests from joining a request that began earlier for what r names, and from getting a copy.
func (c *Cache) forget(r removal) {
	if len(r.tags) > 0 || len(r.under) > 0 {
		c.flights.ForgetAll()
	}
	for _, key := range r.urls {
		c.flights.Forget(key)
	}
	c.local.Forget(slices.Concat(r.urls, c.tagKeys(r.tags))...)
	for _, beginning := range r.under {
		c.local.ForgetAll(beginning)
	}
}

func (c *Cache) tagKeys(tags []string) []string {
	keys := make([]string, len(tags))
	for i, tag := range tags {
		keys[i] = string(c.appendTagKey(nil, tag))
	}
	return keys
}

// isUnremoved reports whether a resource's removal is still to be repeated.
func (c *Cache) isUnremoved(key string) bool {
	return c.unremoved.Has(key) || c.unswept.Find(func(beginning string) bool {
		if strings.HasPrefix(key, beginning) {
			return true
		}
		_, ofPath := c.underQuery(beginning)
		return ofPath && c.pathKey(key) == c.pathKey(beginning)
	})
}

// isTagUnremoved reports whether the purge of the tag with this key is still to be repeated.
func (c *Cache) isTagUnremoved(key []byte) bool {
	return c.unremoved.Any() && c.unremoved.Has(string(key))
}

// isAllRemoved reports whether no removal is left to be repeated.
func (c *Cache) isAllRemoved() bool { return !c.unremoved.Any() && !c.unswept.Any() }

// removeAgain voids resources and tags whose removal failed.
func (c *Cache) removeAgain(ctx context.Context, keys []string) (done []string, err error) {
	var r removal
	tags := string(c.appendTagKey(nil, ""))
	for _, key := range keys {
		if tag, ok := strings.CutPrefix(key, tags); ok {
			r.tags = append(r.tags, tag)
		} else {
			r.urls = append(r.urls, key)
		}
	}
	return c.voidAgain(ctx, r, keys)
}

// sweepAgain voids what lies under prefixes. It does not search a cluster over and over while one of the masters does not answer.
func (c *Cache) sweepAgain(ctx context.Context, beginnings []string) (done []string, err error) {
	if err := c.guard.Reach(ctx); err != nil {
		if nodes.RefusedForGood(err) {
			c.tell.Dropped(ctx, len(beginnings), err)
			return beginnings, nil
		}
		return nil, err
	}
	return c.voidAgain(ctx, removal{under: beginnings}, beginnings)
}

func (c *Cache) voidAgain(ctx context.Context, r removal, keys []string) (done []string, err error) {
	begun := time.Now()
	_, left, refused, err := c.void(ctx, r, func(ctx context.Context) context.Context { return ctx }) // nobody waits: each round trip gets the full timeout
	undone := slices.Concat(left.urls, c.tagKeys(left.tags), left.under)
	done = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(undone, key) })
	if n := refused.len(); n > 0 {
		c.tell.Dropped(ctx, n, err)
	}
	if n := len(done) - refused.len(); n > 0 {
		c.tell.Done(ctx, mayfly.Event{Kind: mayfly.KindRemoval, N: n}, begun)
	}
	return done, err
}

// invalidateGroups voids the groups that a request has changed.
func (c *Cache) invalidateGroups(ctx context.Context, groups []string) {
	if len(groups) > 0 && len(c.opt.TagFields) > 0 {
		c.changed(ctx, removal{tags: groups}, mayfly.Event{N: len(groups)})
	}
}

// invalidate removes resources that a request has changed.
func (c *Cache) invalidate(ctx context.Context, keys []string) {
	for i, key := range keys {
		keys[i] = c.prefix + key
	}
	c.changed(ctx, removal{urls: keys}, mayfly.Event{Key: keys[0], N: len(keys)})
}

// changed voids what a request has changed, whether or not its client is still there.
func (c *Cache) changed(ctx context.Context, r removal, e mayfly.Event) {
	ctx, begun := context.WithoutCancel(ctx), time.Now()
	_, e.Err = c.removed(ctx, r)
	e.Kind = mayfly.KindRemoval
	c.tell.Done(ctx, e, begun)
}
