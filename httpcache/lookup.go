package httpcache

import (
	"context"
	"net/http"
	"time"

	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// sight is what the cache has for a request.
type sight struct {
	own   string // the key of the URL itself
	key   string // of the resource, in Redis: own, unless a No-Vary-Search leads elsewhere
	slot  string // where its answer is or would be: key, or that of a variant
	item         // what the slot holds; its response, if there is one, fits the request
	local bool   // and this was a copy of it

	index    *item  // what key holds, where the answer varies
	name     string // of the variant that the request asks for
	unasked  error  // why Redis could not be asked
	unlisted bool   // there are other variants, and not this one,
	flooded  bool   // and too many new ones lately: none is stored

	path   string // the key of the record of its path, where that was looked for,
	search item   // and what it holds
	unled  bool   // what was found is not for this query
}

// appendSlot appends to a resource's key, which contains no space, what precedes the name in a variant's key.
func (ix *index) appendSlot(key []byte) []byte {
	return append(append(append(key, ' '), ix.generation...), ' ')
}

func (ix *index) slot(key, name string) string { return string(ix.appendSlot([]byte(key))) + name }

func (ix *index) slots(key string, names []string) []string {
	slots := make([]string, len(names))
	for i, name := range names {
		slots[i] = ix.slot(key, name)
	}
	return slots
}

// atHand returns the response to a request that this process has a copy of, or nil. It allocates nothing for what does not vary.
func (c *Cache) atHand(key []byte, says *rfc9111.Selectors) *item {
	if c.opt.NoVarySearch {
		var ok bool
		if key, ok = c.followAtHand(key, says); !ok {
			return nil
		}
	}
	it := c.local.AtFull(key)
	if it == nil || it.index == nil {
		if it == nil || it.response == nil || it.response.fits("", says) {
			return it
		}
		return nil
	}
	want := c.selections.of(it.index.fields, says)
	it = c.local.AtFull(append(it.index.appendSlot(key), want.name...))
	if it == nil || it.response == nil || !it.response.fits(want.variant, says) {
		return nil
	}
	return it
}

// fits reports whether a response is the variant for a request and its query. One stored for the client's own URL does not fit a request
// whose handler sees another URL.
func (r *response) fits(variant string, says *rfc9111.Selectors) bool {
	return r.variant == variant && (says.Inner == "" || byInner(r.fields)) && r.search.fits(says.Query)
}

// byInner reports whether the handler's URL is among the fields that select a variant. It sorts before all others.
func byInner(fields []string) bool { return len(fields) > 0 && fields[0] == rfc9111.InnerURL }

// selectors returns the parts of a request that may select a variant.
func (c *Cache) selectors(r *http.Request, key []byte, inner string) rfc9111.Selectors {
	says := rfc9111.Selectors{Header: r.Header, Host: r.Host, Inner: inner, AnyOrder: c.opt.AnyLanguageOrder}
	if c.opt.NoVarySearch {
		key := string(key)
		says.Query = key[c.queryAt(key):]
	}
	return says
}

// within bounds the later trips of a request to Redis: together with the first they take RedisTimeout at most.
func (c *Cache) within(ctx context.Context, begun time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, begun.Add(c.opt.RedisTimeout))
}

// look finds what there is for a request, here or in Redis. It began at begun.
// With alone only what is stored under the URL's own key is of use.
func (c *Cache) look(ctx context.Context, key string, says *rfc9111.Selectors, begun time.Time, alone bool) sight {
	s := sight{own: key, key: key, slot: key}
	if c.isUnremoved(key) {
		s.unasked = errUnremoved
		return s
	}
	if !c.opt.NoVarySearch {
		return c.lookAt(ctx, s, says, begun)
	}
	if local := c.follow(ctx, &s, says); !local {
		var cancel context.CancelFunc
		ctx, cancel = c.within(ctx, begun)
		defer cancel()
	}
	own := s
	own.key, own.slot = key, key
	switch {
	case s.unasked != nil:
		return s
	case alone:
		return c.lookAt(ctx, own, says, begun)
	}
	if s = c.lookAt(ctx, s, says, begun); s.unled && s.key != key {
		return c.lookAt(ctx, own, says, begun)
	}
	return s
}

// lookAt is look at s.key.
func (c *Cache) lookAt(ctx context.Context, s sight, says *rfc9111.Selectors, begun time.Time) sight {
	key := s.key
	if s.item, s.local, s.unasked = c.see(ctx, key); s.unasked != nil || s.item.index == nil {
		if s.response != nil && !s.response.fits("", says) {
			s.unled = !s.response.search.fits(says.Query)
			s.response, s.unlisted = nil, true
		}
		s.pass = s.pass || s.response == nil && c.passes.Has(s.slot)
		return s
	}
	index := s.item
	s.index = &index
	want := c.selections.of(index.index.fields, says)
	s.name, s.slot = want.name, index.index.slot(key, want.name)
	if !s.local {
		var cancel context.CancelFunc
		ctx, cancel = c.within(ctx, begun)
		defer cancel()
	}
	if s.item, s.local, s.unasked = c.see(ctx, s.slot); s.response != nil && !s.response.fits(want.variant, says) {
		s.unled = !s.response.search.fits(says.Query)
		s.response = nil
	}
	s.unlisted = s.response == nil
	s.pass = s.unlisted && c.passes.Has(s.slot)
	s.flooded = s.unlisted && c.left.Count(key) > c.opt.flood()
	return s
}

// see reads what is under one key.
func (c *Cache) see(ctx context.Context, key string) (it item, local bool, err error) {
	if at := c.local.AtFull([]byte(key)); at != nil {
		return *at, true, nil
	}
	ticket := c.local.Begin(key)
	f, err := c.guard.Look(ctx, key, false)
	if err != nil {
		return it, false, err
	}
	it = decode(f)
	c.keepCopy(key, ticket, it, time.Now().UnixMilli())
	return it, false, nil
}

// keepCopy keeps a copy of what was read under ticket t at now, in unix milliseconds, unless nothing was found.
func (c *Cache) keepCopy(key string, t localsync.Ticket, it item, now int64) {
	if it.response != nil || it.index != nil || it.pass || it.search != nil || it.barrier != 0 {
		c.local.Insert(key, t, it, it.weight(), time.Duration(it.ends-now)*time.Millisecond)
	}
}
