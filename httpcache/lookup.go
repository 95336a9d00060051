package httpcache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/mayflycache/mayfly/internal/lease"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// sight is what the cache has for a request.
type sight struct {
	key   string // of the resource, in Redis
	slot  string // where its answer is or would be: key, or that of a variant
	item         // what the slot holds; its response, if there is one, fits the request
	local bool   // and this was a copy of it

	index    *item  // what key holds, where the answer varies
	variant  string // what the request says in the index's fields
	name     string // of the variant
	unasked  error  // why Redis could not be asked
	unlisted bool   // there are other variants, and not this one
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// usable reports whether it says anything.
func (it *item) usable() bool {
	return it.response != nil || it.index != nil || it.pass || it.barrier != 0
}

// variantName names what a request says in the fields that an answer varies by. Different ones meet by chance only, and
// then the response, which has it in full, is not taken for an answer.
func variantName(variant string) string {
	sum := sha256.Sum256([]byte(variant))
	return hex.EncodeToString(sum[:variantLen])
}

// appendSlot appends the key of a variant to that of its resource, which holds no space.
func (ix *index) appendSlot(key []byte, name string) []byte {
	return append(append(append(append(key, ' '), ix.generation...), ' '), name...)
}

func (ix *index) slot(key, name string) string {
	return string(ix.appendSlot([]byte(key), name))
}

// atHand returns the response to r that this process has a copy of, or nil. It allocates nothing for what does not vary.
func (c *Cache) atHand(key []byte, r *http.Request) *item {
	it := c.near.at(key)
	if it == nil || it.index == nil {
		return it
	}
	variant := rfc9111.Variant(it.index.fields, r.Header)
	it = c.near.at(it.index.appendSlot(key, variantName(variant)))
	if it == nil || it.response == nil || it.response.variant != variant {
		return nil
	}
	return it
}

// look finds what there is for r, here or in Redis.
func (c *Cache) look(ctx context.Context, key string, r *http.Request) sight {
	s := sight{key: key, slot: key}
	if c.doubts.has(key) {
		s.unasked = errDoubted
		return s
	}
	if s.item, s.local, s.unasked = c.see(ctx, key); s.unasked != nil || s.item.index == nil {
		return s
	}
	index := s.item
	s.index = &index
	s.variant = rfc9111.Variant(index.index.fields, r.Header)
	s.name = variantName(s.variant)
	s.slot = index.index.slot(key, s.name)
	if s.item, s.local, s.unasked = c.see(ctx, s.slot); s.response != nil && s.response.variant != s.variant {
		s.response = nil
	}
	s.unlisted = s.response == nil
	return s
}

// see reads what is under one key.
func (c *Cache) see(ctx context.Context, key string) (it item, local bool, err error) {
	if at := c.near.at([]byte(key)); at != nil {
		return *at, true, nil
	}
	ticket := c.near.begin(key)
	f, err := c.guard.Look(ctx, key, false)
	if err != nil {
		return it, false, err
	}
	it = decode(f)
	c.near.insert(key, ticket, it, time.Now().UnixMilli())
	return it, false, nil
}

// again reads the slot of s in Redis anew, past the local tier.
func (c *Cache) again(ctx context.Context, s *sight, f lease.Found) {
	s.item, s.local = decode(f), false
	if s.response != nil && s.index != nil && s.response.variant != s.variant {
		s.response = nil
	}
}
