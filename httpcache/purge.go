package httpcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// Target is what a purge voids: one of URL, Prefix and Tag, or a Group of a URL's origin.
type Target struct {
	// URL is one resource with all its variants: an absolute URL, as clients ask for it. Both http and https are purged.
	URL string

	// Prefix is every resource whose URL begins with it: "https://example.com/blog/". It is found by a SCAN of all keys of the
	// database, which is slow: use tags for frequent purges.
	Prefix string

	// Tag is every response that named it in one of Options.TagFields.
	Tag string

	// Group is every response that named it in Cache-Groups (RFC 9875), of the origin of URL, http and https alike.
	Group string
}

func (t Target) validate() error {
	named := 0
	for _, field := range []string{t.URL, t.Prefix, t.Tag} {
		if field != "" {
			named++
		}
	}
	switch {
	case named == 0 && t.Group != "":
		return fmt.Errorf("the group %q has no URL: groups are an origin's, name one of its URLs", t.Group)
	case named == 0:
		return errors.New("the Target is empty: set its URL, Prefix or Tag")
	case named > 1 || t.Group != "" && t.URL == "":
		return fmt.Errorf("%+v is several targets: give each a Target of its own", t)
	case strings.ContainsAny(t.Tag, " ,\t"):
		return fmt.Errorf("the tag %q has a space or comma, which no tag has", t.Tag)
	}
	return nil
}

// Purge voids what is stored for the targets. Once it returned nil, no answer for them that the handler was asked for earlier is
// stored, or served by any process that hears Redis. If it fails, what may not be void is remembered and purged again when Redis is back, as
// [Options].Unremoved says; until then this process serves none of it, and others go on serving it. Purging again does no harm.
//
// A Redis that does not answer is waited for as long as one request may wait (Options.RedisTimeout), however many targets there are, and after
// that at once for as long as its breaker is open. Only the search for a Prefix takes longer, while Redis answers.
func (c *Cache) Purge(ctx context.Context, targets ...Target) error {
	_, err := c.PurgeFound(ctx, targets...)
	return err
}

// PurgeFound is Purge, and returns how many keys it removed from Redis: none if nothing was stored for these URLs, or if they are not
// spelled as clients spell them. A URL is one key, whatever its variants, and is also counted while it is being loaded; under a prefix
// each variant is one more. Tags add nothing: responses that have them are void from now on, but are not searched for. If the
// network lost a reply, found may be too small.
func (c *Cache) PurgeFound(ctx context.Context, targets ...Target) (found int, err error) {
	if c.works.Err() != nil {
		return 0, fmt.Errorf("httpcache: purge: %w", mayfly.ErrClosed)
	}
	var r removal
	for _, t := range targets {
		var keys []string
		switch err = t.validate(); {
		case err != nil:
			return 0, fmt.Errorf("httpcache: purge: %w", err)
		case t.Tag != "":
			r.tags = append(r.tags, t.Tag)
			continue
		case t.Prefix != "":
			keys, err = c.keysOf(t.Prefix, true)
			r.under = append(r.under, keys...)
		case t.Group != "":
			keys, err = c.keysOf(t.URL, false)
			for _, key := range keys {
				r.tags = append(r.tags, rfc9111.Group(strings.TrimPrefix(key, c.prefix), t.Group))
			}
		default:
			keys, err = c.keysOf(t.URL, false)
			r.urls = append(r.urls, keys...)
		}
		if err != nil {
			return 0, fmt.Errorf("httpcache: purge %q: %w", cmp.Or(t.Prefix, t.URL), err)
		}
	}
	begun := time.Now()
	found, err = c.removed(ctx, r)
	c.tell.Done(ctx, mayfly.Event{Kind: mayfly.KindRemoval, N: len(targets), Err: err}, begun)
	if err != nil {
		return found, fmt.Errorf("httpcache: purge: %w", err)
	}
	return found, nil
}

// keysOf returns the keys of a URL, or their common beginnings, under both schemes. A scheme's default port is left out, but the other
// scheme's key may contain it, if a proxy in front speaks another scheme than the cache.
func (c *Cache) keysOf(text string, isPrefix bool) (keys []string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Host == "" && (u.Scheme == "" || u.Path == "") && !c.opt.AnyHost || u.Path == "" && isPrefix && u.RawQuery != "" {
		return nil, errors.New("it is not an absolute URL")
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https", "":
	default:
		return nil, fmt.Errorf("its scheme is %s: http and https are cached", u.Scheme)
	}
	u.Host = rfc9111.WithoutPort(strings.ToLower(u.Scheme), u.Host)
	own := u.Host
	spellings := [][2]string{{"http", own}, {"https", own}}
	if u.Port() == "" && own != "" && !c.opt.AnyHost {
		spellings = append(spellings, [2]string{"http", own + ":443"}, [2]string{"https", own + ":80"})
	}
	for _, s := range spellings {
		u.Scheme, u.Host = s[0], s[1]
		key, ok := c.keys.Of(u)
		if !ok {
			return nil, errors.New("its host or path is not one")
		}
		keys = append(keys, c.prefix+key)
	}
	return keys, nil
}

// purgeKeys removes resources, and returns which it has not. Their flights are forgotten before the removal, so that nobody joins an earlier
// request, and after it, for flights that began meanwhile. Variants cannot be reached without their index.
func (c *Cache) purgeKeys(ctx context.Context, keys []string) (found int, left []string, err error) {
	if len(keys) == 0 {
		return 0, nil, nil
	}
	mine := removal{urls: keys}
	c.forget(mine)
	also, err := c.purgePaths(ctx, keys)
	if err != nil {
		return 0, keys, err
	}
	all := append(slices.Clip(keys), also...)
	c.forget(removal{urls: all})
	found, errs := c.guard.DeleteFound(ctx, all)
	c.forget(mine) // those that began meanwhile
	c.local.Changed(ctx, all...)
	if slices.ContainsFunc(errs[len(keys):], func(err error) bool { return err != nil }) {
		return found, keys, errors.Join(errs...) // it is not known which of them leads where
	}
	for i, key := range keys {
		if errs[i] != nil {
			left = append(left, key)
		}
	}
	return found, left, errors.Join(errs...)
}

// purgePrefixes removes what lies under common beginnings of keys, and returns those under which something may be left: after one that
// failed the next is not tried.
func (c *Cache) purgePrefixes(ctx context.Context, prefixes []string) (found int, left []string, err error) {
	c.forget(removal{under: prefixes})
	var n atomic.Int64 // of all masters
	for i, prefix := range prefixes {
		if path, ofPath := c.underQuery(prefix); ofPath {
			err = c.remove(ctx, path)
		}
		if err == nil {
			err = c.guard.Clear(ctx, prefix, func(removed int) { n.Add(int64(removed)) })
		}
		c.flights.ForgetAll()
		c.local.ChangedAll(ctx, prefix)
		if err != nil {
			return int(n.Load()), prefixes[i:], err
		}
	}
	return int(n.Load()), nil, nil
}

// underQuery returns the key of the record of a path, where a common beginning ends in a query: a part of one may be anywhere in another query
// that is one with it, so all that the rule of the path leads to is voided.
func (c *Cache) underQuery(prefix string) (path string, ofPath bool) {
	if !c.opt.NoVarySearch || c.queryAt(prefix) == len(prefix) {
		return "", false
	}
	return c.pathKey(prefix), true
}

// Tags are purged by a barrier: the purge draws a version, greater than every one before, and writes it beside each tag. A
// response carries the version that was the last when the handler was asked, and is void if a barrier of one of its
// tags is newer. So a purge costs one write per tag, however many responses have it, and catches those that are still
// being loaded; and a response with tags costs a look at their barriers, which the local tier keeps copies of.

func (c *Cache) epochKey() string { return c.prefix + "purges" }

func (c *Cache) appendTagKey(dst []byte, tag string) []byte {
	return append(append(append(dst, c.prefix...), "tag "...), tag...)
}

// barrierTTL is longer than the life of any response requested before the barrier.
func (c *Cache) barrierTTL() time.Duration { return c.ns.TTL + 2*c.opt.SharedTimeout }

// purgeTags purges tags, and returns which it has not.
func (c *Cache) purgeTags(ctx context.Context, tags []string) (left []string, err error) {
	if len(tags) == 0 {
		return nil, nil
	}
	version, err := c.raise(ctx)
	if err != nil {
		return tags, err
	}
	keys, values, ttl := c.tagKeys(tags), make([]lease.Value, len(tags)), c.barrierTTL()
	for i, key := range keys {
		rec, err := item{barrier: version}.encode(record.NewID(), ttl)
		if err != nil {
			return tags, err
		}
		values[i] = lease.Value{Key: key, Bytes: rec, TTL: ttl}
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
	return left, errors.Join(errs...)
}

// raise draws a version.
func (c *Cache) raise(ctx context.Context) (version int64, err error) {
	key := c.epochKey()
	defer func() {
		c.local.Changed(ctx, key)
		c.epochs.until.Store(0)
	}()
	for range 50 { // more purges at once than this many would be an error
		a := c.guard.LookMany(ctx, []string{key}, false)[0] // within what is left for all of the purge
		f, err := a.Found, a.Err
		if err == nil && f.State == lease.Loading { // another purge draws the first one
			wait, cancel := context.WithTimeout(ctx, c.opt.RedisTimeout)
			f, err = c.guard.Await(wait, key, func(f lease.Found) bool { return f.State != lease.Loading })
			cancel()
		}
		if err != nil {
			return 0, err
		}
		version = max(decode(f).barrier+1, time.Now().UnixMilli())
		var claim *lease.Claim
		if f.State != lease.Present {
			a := c.guard.Claim(ctx, key, f)
			if claim = a.Claim; claim == nil || a.Err != nil {
				c.release(ctx, claim)
				if a.Err != nil {
					return version, a.Err
				}
				continue
			}
		}
		if done, err := c.write(ctx, key, f, claim, item{barrier: version}, c.barrierTTL()); done || err != nil {
			return version, err
		}
	}
	return 0, errors.New("too many purges at once")
}

// barriersAtHand says what this process knows of the barriers of r's tags: whether one voids r, or else the keys of those
// that it knows nothing of. It allocates nothing where it knows all.
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
		case at.barrier > r.epoch:
			return true, nil
		}
	}
	return false, missing
}

// purged reports whether a response was asked for before one of its tags was purged.
func (c *Cache) purged(ctx context.Context, r *response) (bool, error) {
	void, missing := c.barriersAtHand(r)
	if void || len(missing) == 0 {
		return void, nil
	}
	for _, a := range c.lookTags(ctx, missing) {
		if a.Err != nil {
			return true, a.Err
		}
		if decode(a.Found).barrier > r.epoch {
			return true, nil
		}
	}
	return false, nil
}

// lookTags reads barriers, and keeps copies of them, or of that there is none.
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

// epochs is the latest version of the purges that this process knows. An outdated one is harmless: a response that carries it is void
// too early, never too late.
type epochs struct {
	reads   singleflight.Group
	version atomic.Int64
	until   atomic.Int64 // unix ms
}

const (
	unknown   = -1 // could not be asked
	epochLife = time.Second
)

// at returns the version to be carried by what the handler is asked for now. ctx has a deadline.
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
		it, _, err := c.see(ctx, c.epochKey())
		if err == nil {
			e.version.Store(it.barrier)
			e.until.Store(now + epochLife.Milliseconds())
		}
		return it.barrier, err
	})
	if err != nil {
		return unknown
	}
	return version.(int64)
}
