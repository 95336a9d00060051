package cacheaside

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Set stores v under key for the namespace's TTL. The last writer wins; a load in flight does not overwrite it. After a change
// of the database prefer [Cache.Delete]: two writers may call Set in another order than they committed in. Set is sent once. If
// it fails, Redis may hold the old value, the new one or none; the key is deleted as soon as Redis answers. What the network
// still delivers after that stays for the TTL.
//
// There is no Update that reads a copy, changes it and sets it: the copy may be old, and of two such updates one would be lost. Change
// the database and then Delete: db.UpdateUser(ctx, u); cache.Delete(ctx, u.ID). For values that live only in Redis, use sliding's Update.
func (c *Cache[K, V]) Set(ctx context.Context, key K, v V) error {
	return c.SetMany(ctx, map[K]V{key: v})
}

// SetFor is Set with a TTL for this value alone, at most the namespace's MaxTTL, with the usual jitter. A value that a loader later
// stores under the key has the namespace's TTL again, or the loader's own ([Loaded].TTL).
func (c *Cache[K, V]) SetFor(ctx context.Context, key K, v V, ttl time.Duration) error {
	full, err := c.begin(key)
	if err != nil {
		return err
	}
	if err := c.ns.CheckTTL("the ttl", ttl); err != nil {
		return c.ns.Fail("set", full, err)
	}
	return c.set(ctx, map[K]V{key: v}, ttl)
}

// SetMany stores values as Set does, in one trip per server. If some keys failed, the others are stored, and the error is a
// [*ManyError] that says which. If a key or a value cannot be encoded, nothing is stored. RedisTimeout is for all of them, and if it ends
// first all count as failed, and are deleted: store thousands by one call, not tens of thousands.
func (c *Cache[K, V]) SetMany(ctx context.Context, values map[K]V) error {
	return c.set(ctx, values, c.ns.TTL)
}

func (c *Cache[K, V]) set(ctx context.Context, values map[K]V, each time.Duration) error {
	keys, fulls := make([]K, 0, len(values)), make([]string, 0, len(values))
	sets := make([]lease.Value, 0, len(values))
	for key, v := range values {
		full, err := c.begin(key)
		if err != nil {
			return err
		}
		ttl := c.ns.Jitter.TTL(each)
		bytes, err := c.encode(v, record.NewID(), ttl, 0)
		if err != nil {
			return c.ns.Fail("set", full, err)
		}
		keys, fulls = append(keys, key), append(fulls, full)
		sets = append(sets, lease.Value{Key: full, Bytes: bytes, TTL: ttl + c.opt.window(), Ends: c.glance})
	}
	return c.written(ctx, "set", mayfly.KindWrite, keys, fulls, func() []error { return c.guard.Set(ctx, sets) })
}

// Delete removes keys. Call it after the commit of a change: once it returned nil, no value loaded before is stored, nor
// returned by a call that begins later, in any process, but for local copies until Redis tells of the change. If it fails,
// the keys are remembered and deleted when Redis is back; until then this process loads them at each Get. It may be
// repeated: a deletion that the network delivers late costs a load.
//
// If a key cannot be encoded, or the cache is closed, no key is deleted or remembered, and the error says so. RedisTimeout is for all keys
// of one call: give it thousands, not tens of thousands.
func (c *Cache[K, V]) Delete(ctx context.Context, keys ...K) error {
	fulls := make([]string, len(keys))
	for i, key := range keys {
		full, err := c.begin(key)
		if err != nil {
			if len(keys) > 1 {
				err = fmt.Errorf("%w (no key of this call was deleted)", err)
			}
			return err
		}
		fulls[i] = full
	}
	return c.written(ctx, "delete", mayfly.KindRemoval, keys, fulls, func() []error { return c.guard.Delete(ctx, fulls) })
}

// write writes something that makes running loads worthless. Later callers would be late for these and get nothing from them
// (internal/client/flight), so their flights are forgotten, before and after the write: in this process nobody waits for them.
func (c *Cache[K, V]) write(ctx context.Context, fulls []string, write func() []error) []error {
	forget := func() {
		failedBefore := c.unremoved.Mark() != 0
		for _, full := range fulls {
			if c.flights.Forget(full); failedBefore {
				c.flights.Forget(apart(full))
			}
		}
	}
	forget()
	c.local.Forget(fulls...)
	errs := write()
	forget()
	c.local.Changed(ctx, fulls...)
	return errs
}

// written writes, reports the outcome, and has the keys that failed deleted later.
func (c *Cache[K, V]) written(ctx context.Context, doing string, kind mayfly.Kind, keys []K, fulls []string, write func() []error) error {
	begun, mark := time.Now(), c.unremoved.Mark()
	errs := c.write(ctx, fulls, write)
	failed := make(map[K]error)
	var again, done []string
	for i, err := range errs {
		if err != nil {
			failed[keys[i]] = err
			again = append(again, fulls[i])
		} else {
			done = append(done, fulls[i])
		}
	}
	c.unremoved.Remove(mark, done...)
	e := mayfly.Event{Kind: kind, Outcome: mayfly.OutcomeOK, N: len(keys), Took: time.Since(begun)}
	if len(keys) == 1 {
		e.Key = fulls[0]
	}
	if len(failed) == 0 {
		c.tell(ctx, e)
		return nil
	}
	err := &ManyError[K]{failed}
	e.Outcome, e.Err = mayfly.OutcomeFailed, err
	c.tell(ctx, e)
	c.deleteLater(ctx, err, again...)
	if len(keys) > 1 {
		return err
	}
	return c.ns.Fail(doing, fulls[0], failed[keys[0]])
}

// Clear removes every key of the namespace, by SCAN and UNLINK on every master: never FLUSH, and nothing of other
// namespaces. It takes time in proportion to all keys of the database. Values stored while it runs may stay. With
// [Options].Hold, keys that were deleted lately go on refusing loaded values. If it fails, some keys are removed
// and others not, and unlike after Delete nothing is remembered: call it again.
func (c *Cache[K, V]) Clear(ctx context.Context) error {
	if err := c.works.Err(); err != nil {
		return c.ns.Fail("clear", c.ns.Name, err)
	}
	var removed atomic.Int64
	begun := time.Now()
	c.flights.ForgetAll()
	c.local.ForgetAll(c.ns.Prefix)
	err := c.guard.Clear(ctx, c.ns.Prefix, func(n int) { removed.Add(int64(n)) })
	c.flights.ForgetAll()
	c.local.ChangedAll(ctx, c.ns.Prefix)
	n := int(removed.Load())
	c.tell.Done(ctx, mayfly.Event{Kind: mayfly.KindRemoval, N: n, Err: err}, begun)
	if err != nil {
		return fmt.Errorf("cacheaside: clear %q, after %d keys: %w", c.ns.Prefix, n, err)
	}
	return nil
}

// deleteLater remembers keys that could not be deleted, and has them deleted when Redis is back.
func (c *Cache[K, V]) deleteLater(ctx context.Context, why error, fulls ...string) {
	c.unremoved.Add(ctx, why, fulls...)
	c.local.Forget(fulls...) // what was read between the write and now
}

// deleteAgain deletes keys whose deletion failed.
func (c *Cache[K, V]) deleteAgain(ctx context.Context, fulls []string) (done []string, err error) {
	begun := time.Now()
	errs := c.write(ctx, fulls, func() []error { return c.guard.Delete(ctx, fulls) })
	for i, err := range errs {
		if err == nil {
			done = append(done, fulls[i])
		}
	}
	if len(done) > 0 {
		c.tell(ctx, mayfly.Event{Kind: mayfly.KindRemoval, Outcome: mayfly.OutcomeOK, N: len(done), Took: time.Since(begun)})
	}
	return done, errors.Join(errs...)
}
