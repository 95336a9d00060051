package httpcache

import (
	"context"
	"hash/maphash"
	"sync/atomic"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// familiar remembers what responses in Redis looked like when they were last read, so that reading one again costs less: it borrows memory of
// the right size, and decodes only a head that has changed. It is for caches without a local tier. What it remembers answers nobody: that is
// always what Redis has.
type familiar struct {
	seed   maphash.Seed
	places [256]atomic.Pointer[glimpse]
}

// glimpse is what the record of a response looked like.
type glimpse struct {
	key      string
	size     int
	head     string
	response *response // what the head says; it has no body
	met      atomic.Bool
}

// mostFamiliar is the length of the longest heads that are remembered.
const mostFamiliar = 4 << 10

func newFamiliar() *familiar { return &familiar{seed: maphash.MakeSeed()} }

// read reads key through g. A response may be given back: see [lease.Found.GiveBack].
func (f *familiar) read(ctx context.Context, g *lease.Guard, key string, it *item) error {
	place := &f.places[maphash.String(f.seed, key)%uint64(len(f.places))]
	held := place.Load()
	known := held
	if held != nil && held.key != key {
		known = nil
	}
	var found lease.Found
	var err error
	if known == nil {
		found, err = g.Look(ctx, key, false)
	} else {
		found, err = g.Borrow(ctx, key, known.size)
	}
	if err != nil {
		*it = item{}
		return err
	}
	*it = decodeLike(found, known)
	switch size := len(found.Raw); {
	case known != nil && it.head == known.head && size == known.size:
		if !known.met.Load() {
			known.met.Store(true)
		}
	case it.response == nil || size > nodes.MostLent || len(it.head) > mostFamiliar:
		if known != nil && size > 0 { // nobody would give back what an index is read into
			place.CompareAndSwap(held, nil)
		}
	case known == nil && held != nil && held.met.Swap(false): // another key's, which keeps the place once more
	default:
		bare := *it.response
		bare.body = nil
		place.CompareAndSwap(held, &glimpse{key: key, size: size, head: it.head, response: &bare})
	}
	return nil
}
