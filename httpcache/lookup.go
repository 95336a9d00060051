package httpcache

import (
	"context"
	"net/http"
	"time"

	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// sight is what the cache holds for a request.
type sight struct {
	own   string // the key of the URL itself
	key   string // of the resource, in Redis: the same as own, unless a No-Vary-Search rule leads elsewhere
	slot  string // where the answer is, or would be: key, or the key of a variant
	item         // the record of the slot; its response, if there is one, fits the request
	local bool   // the record was read from this process's copy

	index    *item  // the record of key, if the answer varies
	name     string // of the variant that the request selects
	unasked  error  // why Redis was not asked
	unlisted bool   // the index has other variants and lacks this one,
	flooded  bool   // and too many were new lately, so none is stored

	path   string // the key of the record of its path, if that was looked for,
	search item   // and that record
	unled  bool   // the response that was found is not for this query
}

// appendSlot appends to a resource's key, which contains no space, the part of a variant's key that precedes the variant's name.
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

// atHand returns this process's copy of the response to a request, or nil. It does not allocate if the response does not vary.
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

// fits reports whether a response is the variant for a request and its query. If the handler sees another URL than the client's own, a response
// stored for the client's own URL does not fit.
func (r *response) fits(variant string, says *rfc9111.Selectors) bool {
	return r.variant == variant && (says.Inner == "" || byInner(r.fields)) && r.search.fits(says.Query)
}

// byInner reports whether the handler's URL is among the fields that select a variant. It sorts before all others.
func byInner(fields []string) bool { return len(fields) > 0 && fields[0] == rfc9111.InnerURL }

// selectors returns the parts of a request that can select a variant.
func (c *Cache) selectors(r *http.Request, key []byte, inner string) rfc9111.Selectors {
	says := rfc9111.Selectors{Header: r.Header, Host: r.Host, Inner: inner, AnyOrder: c.opt.AnyLanguageOrder}
	if c.opt.NoVarySearch {
		key := string(key)
		says.Query = key[c.queryAt(key):]
	}
	return says
}

// within bounds a request's later round trips to Redis: all of them, the first included, take RedisTimeout at most.
func (c *Cache) within(ctx context.Context, begun time.Time) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, begun.Add(c.opt.RedisTimeout))
}

// look looks for a request's response, here and in Redis, and puts it into s. begun is when the look began.
// With alone it uses only what is stored under the URL's own key.
func (c *Cache) look(ctx context.Context, s *sight, key string, says *rfc9111.Selectors, begun time.Time, alone bool) {
	*s = sight{own: key, key: key, slot: key}
	if c.isUnremoved(key) {
		s.unasked = errUnremoved
		return
	}
	if !c.opt.NoVarySearch {
		c.lookAt(ctx, s, says, begun)
		return
	}
	if local := c.follow(ctx, s, says); !local {
		var cancel context.CancelFunc
		ctx, cancel = c.within(ctx, begun)
		defer cancel()
	}
	if s.unasked != nil {
		return
	}
	own := *s
	own.key, own.slot = key, key
	if !alone {
		if c.lookAt(ctx, s, says, begun); !s.unled || s.key == key {
			return
		}
	}
	*s = own
	c.lookAt(ctx, s, says, begun)
}

// lookAt is look for the key s.key.
func (c *Cache) lookAt(ctx context.Context, s *sight, says *rfc9111.Selectors, begun time.Time) {
	key := s.key
	if s.local, s.unasked = c.see(ctx, key, &s.item); s.unasked != nil || s.item.index == nil {
		if s.response != nil && !s.response.fits("", says) {
			s.unled = !s.response.search.fits(says.Query)
			s.response, s.unlisted = nil, true
		}
		s.pass = s.pass || s.response == nil && c.passes.Has(s.slot)
		return
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
	if s.local, s.unasked = c.see(ctx, s.slot, &s.item); s.response != nil && !s.response.fits(want.variant, says) {
		s.unled = !s.response.search.fits(says.Query)
		s.response = nil
	}
	s.unlisted = s.response == nil
	s.pass = s.unlisted && c.passes.Has(s.slot)
	s.flooded = s.unlisted && c.left.Count(key) > c.opt.flood()
}

// see reads the record of one key.
func (c *Cache) see(ctx context.Context, key string, it *item) (local bool, err error) {
	if c.local == nil {
		return false, c.familiar.read(ctx, c.guard, key, it)
	}
	if at := c.local.AtFull([]byte(key)); at != nil {
		*it = *at
		return true, nil
	}
	ticket := c.local.Begin(key)
	f, err := c.guard.Look(ctx, key, false)
	if err != nil {
		*it = item{}
		return false, err
	}
	*it = decode(f)
	c.keepCopy(key, ticket, *it, time.Now().UnixMilli())
	return false, nil
}

// keepCopy keeps a copy of what was read under ticket t at now, in unix milliseconds. It keeps nothing if nothing was found.
func (c *Cache) keepCopy(key string, t localsync.Ticket, it item, now int64) {
	if it.response != nil || it.index != nil || it.pass || it.search != nil || it.barrier != 0 {
		c.local.Insert(key, t, it, it.weight(), time.Duration(it.ends-now)*time.Millisecond)
	}
}
