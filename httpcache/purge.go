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

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// Target names what a purge voids: one of URL, Prefix and Tag, or a Group of a URL's origin.
type Target struct {
	// URL is one resource with all its variants: an absolute URL, as clients request it. Both http and https are purged.
	URL string

	// Prefix is every resource whose URL begins with it: "https://example.com/blog/". It is found by a SCAN of all keys of the
	// database, which is slow: use tags for frequent purges. With Options.SortQuery it may end with a "?" and must not name parameters, since
	// these are sorted.
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
		return fmt.Errorf("the group %q has no URL: a group belongs to an origin, name one of its URLs", t.Group)
	case named == 0:
		return errors.New("the Target is empty: set its URL, Prefix or Tag")
	case named > 1 || t.Group != "" && t.URL == "":
		return fmt.Errorf("%+v is several targets: give each a Target of its own", t)
	case strings.ContainsAny(t.Tag, " ,\t"):
		return fmt.Errorf("the tag %q has a space or comma, which no tag has", t.Tag)
	}
	return nil
}

// Purge voids what is stored for the targets. After it returned nil, no answer for them that was requested from the handler earlier is
// stored, or served by any process that hears Redis. If it fails, the cache remembers what may still be valid and purges it again when Redis is
// back, as [Options].Unremoved says. Until then this Cache serves none of it. Other caches still serve it, in this process too. Purging again
// does no harm. What Redis refuses permanently is not remembered, and is served again: a command that the connection's user may not use (NOPERM),
// or that the server does not know. A malformed target is an error of the whole call: nothing was purged.
//
// Purge waits for a Redis that does not answer as long as one request may wait (Options.RedisTimeout), however many targets there are. While
// the breaker is open after that, it does not wait at all. Only the search for a Prefix takes longer, as long as Redis answers.
func (c *Cache) Purge(ctx context.Context, targets ...Target) error {
	_, err := c.PurgeFound(ctx, targets...)
	return err
}

// PurgeFound is Purge, and returns how many keys it removed from Redis. That is zero if nothing was stored for these URLs, or if they are not
// spelled as clients spell them. A URL is one key, whatever its variants, and counts too while it is being loaded. Under a prefix
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
			return 0, fmt.Errorf("httpcache: purge: %w: nothing was purged", err)
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
			return 0, fmt.Errorf("httpcache: purge %q: %w: nothing was purged", cmp.Or(t.Prefix, t.URL), err)
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

// keysOf returns the keys of a URL, or the beginnings that they share, under both schemes. A scheme's default port is left out, but the other
// scheme's key may contain it, if a proxy in front of the server speaks another scheme than the cache.
func (c *Cache) keysOf(text string, isPrefix bool) (keys []string, err error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	if u.Host == "" && (u.Scheme == "" || u.Path == "") && !c.opt.AnyHost || u.Path == "" && isPrefix && u.RawQuery != "" {
		return nil, errors.New("it is not an absolute URL")
	}
	if isPrefix && c.opt.SortQuery && u.RawQuery != "" {
		return nil, errors.New("SortQuery sorts the parameters, and a part of a query would miss some URLs: end it with the \"?\", or name URLs or a tag")
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
			return nil, errors.New("its host or its path is malformed")
		}
		keys = append(keys, c.prefix+key)
	}
	return keys, nil
}

// purgeKeys removes resources, and returns those it has not removed. It forgets their flights before the removal, so that nobody joins an
// earlier request, and again after it, for flights that began meanwhile. Variants cannot be reached without their index.
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
		return found, keys, summary(errs) // it is not known where each of them leads
	}
	for i, key := range keys {
		if errs[i] != nil {
			left = append(left, key)
		}
	}
	return found, left, summary(errs)
}

// purgePrefixes removes what lies under common beginnings of keys, and returns the beginnings under which something may be left. After one has
// failed it does not try the next.
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

// underQuery returns the key of the record of a path, if a common beginning ends in a query. The beginning of one query may be anywhere in an
// equivalent query, so everything that the path's rule leads to is voided.
func (c *Cache) underQuery(prefix string) (path string, ofPath bool) {
	if !c.opt.NoVarySearch || c.queryAt(prefix) == len(prefix) {
		return "", false
	}
	return c.pathKey(prefix), true
}
