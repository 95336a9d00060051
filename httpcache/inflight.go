package httpcache

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mayflycache/mayfly/internal/client/record"
)

// A body is in memory while its handler writes it, until it is stored, and for as long as its clients take to read it, which they
// control. So all bodies of a cache share one budget, Options.MaxInFlight. A body without room goes to its client while the handler
// writes it, at the client's pace, and is not stored. If there is no room to read a stored body, the handler is called instead. A body with
// several readers is in memory once, and counts once.

// uncounted is the size up to which bodies are not counted: about as much as a connection takes anyway. So small answers are stored and served
// even when there is no room.
const uncounted = 64 << 10

var errNoRoom = errors.New("the bodies in flight already take all the memory they may (MaxInFlight)")

// bodies are the bodies in flight of a cache.
type bodies struct {
	most int64

	mu   sync.Mutex // guards the rest
	used int64
	read map[record.ID]*held // bodies that were read from Redis, or are copies of the local tier
}

// held is one body while it has users. A nil held is not counted.
type held struct {
	of    *bodies
	size  int64 // of.mu guards it and the fields below
	users int
	item  item // the item that was read, if it was read
}

// grow makes h larger by n, and reports false if there is no room.
func (h *held) grow(n int64) bool {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.of.used+n > h.of.most {
		return false
	}
	h.of.used += n
	h.size += n
	return true
}

// use adds a user, who must call done. It needs no room, since the body is in memory already.
func (h *held) use() {
	if h == nil {
		return
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.users++; h.users == 1 {
		h.of.used += h.size
	}
}

// done removes a user.
func (h *held) done() {
	if h == nil {
		return
	}
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.users--; h.users == 0 {
		h.of.used -= h.size
		if id := h.item.found.Header.ID; h.of.read[id] == h {
			delete(h.of.read, id)
		}
	}
}

// new returns an empty body with one user.
func (b *bodies) new() *held { return &held{of: b, users: 1} }

// hold makes room for an item that was read, or shares one that another request has read already. It reports false if there is no room.
// A copy of the local tier needs no room, since it is in memory anyway.
func (b *bodies) hold(it *item, copied bool) (h *held, ok bool) {
	if it.response == nil || len(it.response.body) <= uncounted {
		return nil, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id, size := it.found.Header.ID, int64(len(it.found.Raw))
	if h := b.read[id]; h != nil && h.size == size {
		h.users++
		*it = h.item
		return h, true
	}
	if b.used+size > b.most && !copied {
		return nil, false
	}
	h = &held{of: b, size: size, users: 1, item: *it}
	b.used += size
	if b.read == nil {
		b.read = make(map[record.ID]*held)
	}
	b.read[id] = h
	return h, true
}

// encode is item.encode, with room for the record until the caller calls done.
func (c *Cache) encode(it item, id record.ID, ttl time.Duration) (rec []byte, done func(), err error) {
	done = func() {}
	if r := it.response; r != nil && len(r.body) > uncounted {
		h := c.bodies.new()
		if !h.grow(int64(len(r.body))) {
			return nil, done, errNoRoom
		}
		done = h.done
	}
	if rec, err = it.encode(id, ttl); err != nil {
		done()
		return nil, func() {}, err
	}
	return rec, done, nil
}

// crowdedFor is how long a resource is not read from Redis after there was no room for it. Reading it just to find that out would take memory
// too.
const crowdedFor = time.Second

// findWithRoom is find, and makes room for the response that it finds until the exchange ends or looks again.
func (x *exchange) findWithRoom(ctx context.Context) {
	c := x.cache
	x.held.done()
	x.held = nil
	if c.crowded.Has(x.key) {
		x.s = sight{own: x.key, key: x.key, slot: x.key, unasked: errNoRoom}
		return
	}
	c.look(ctx, &x.s, x.key, &x.says, x.asked, x.unled)
	var ok bool
	if x.held, ok = c.bodies.hold(&x.s.item, x.s.local); !ok {
		c.crowded.Add(x.key, crowdedFor)
		x.s.item, x.s.unasked = item{}, errNoRoom
	}
}
