package navsession

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/keyspace"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// RelatedOptions bound what a Related keeps and writes. Every zero is a default that works.
type RelatedOptions struct {
	// Kept is how many others are kept for each page: those seen with it most often. Zero is 100.
	Kept int

	// MinVisits is the number of visits that must have seen two pages together before Top shows them. A smaller number of visits may come
	// from a single user who came back or clicked twice. Zero is 3. 1 shows everything to everybody, which is fine if all pages are public.
	MinVisits int

	// PerVisit bounds how many other pages of a visit a page is counted with. Zero is 8.
	PerVisit int

	// RedisTimeout is how long one request to Redis may take, as in [Options]. Zero is 150 ms.
	RedisTimeout time.Duration
}

// Related counts which pages are seen in the same visits, "so that you can recommend related products". P is what is recommended, such as a
// product number. Do not count personal pages, such as an order or a search: once a page was seen in [RelatedOptions].MinVisits visits,
// perhaps all of one user, it is shown to everybody who sees the other page. Related is safe for concurrent use, starts no goroutine and
// needs no Close.
//
// Each page has a sorted set of the other pages, scored by the number of visits that saw both. A set is bounded. It has the namespace's
// TTL, counted from the last visit that saw its page, so pages that nobody looks at any more are forgotten. Every write is MULTI, ZINCRBY,
// ZREMRANGEBYRANK, PEXPIRE, EXEC on one key, and so on one node of a cluster. When a set is full, a new page takes the place of one that
// was seen once, or is not kept.
//
// # Memory
//
// In Redis 8, a set takes at most
//
//	200 + len(key) + Kept x (1.25 x len(member) + 10) bytes  if Kept + PerVisit <= 128 and members have 64 bytes at most
//	300 + len(key) + Kept x (len(member) + 120) bytes        otherwise
//
// so 100 others of 8 bytes take at most 2.2 kB for a page, and 220 MB for 100,000 products.
type Related[P comparable] struct {
	room     room[P, P]
	perVisit int
	least    float64
	last     any // the rank of the last one that is not kept
}

// NewRelated returns the related pages of ns. Its keys are the pages, and the members of a page's set are written by the codec. NewRelated
// does no I/O. The namespace must have no Local tier, and no Plain, Clone or Cost, which would mean nothing.
func NewRelated[P comparable](ns mayfly.Namespace[P, P], o RelatedOptions) (*Related[P], error) {
	room, c := keyspace.Of("navsession", ns)
	c.Refuse(ns.Local != nil, notLocal)
	noCopies(c, ns)
	c.Refuse(o.Kept < 0, "RelatedOptions.Kept must not be negative, got %d", o.Kept)
	c.Refuse(o.MinVisits < 0, "RelatedOptions.MinVisits must not be negative, got %d; 1 shows what was seen in one visit", o.MinVisits)
	c.Refuse(o.PerVisit < 0, "RelatedOptions.PerVisit must not be negative, got %d", o.PerVisit)
	c.TTL("RelatedOptions.RedisTimeout", o.RedisTimeout)
	if err := c.Err(); err != nil {
		return nil, err
	}
	return &Related[P]{roomOf(room, o.RedisTimeout), cmp.Or(o.PerVisit, 8), float64(cmp.Or(o.MinVisits, 3)), -cmp.Or(o.Kept, 100) - 1}, nil
}

// Record counts a page that was seen after earlier pages of the same visit, given newest first as [Visits.Recent] returns them. A page that
// is among the earlier ones was already counted, and is not counted again. Record counts at most PerVisit of the earlier pages, so it
// writes at most PerVisit + 1 sets, concurrently. If that takes too long for a request, record in the background. After an error some of
// the sets may have been written.
func (r *Related[P]) Record(ctx context.Context, page P, earlier ...P) error {
	if slices.Contains(earlier, page) {
		return nil
	}
	others := make([]P, 0, r.perVisit)
	for _, p := range earlier {
		if len(others) < r.perVisit && !slices.Contains(others, p) {
			others = append(others, p)
		}
	}
	if len(others) == 0 {
		return nil
	}
	errs := make([]error, 1+len(others))
	var all sync.WaitGroup
	all.Go(func() { errs[0] = r.count(ctx, page, others) })
	for i := range others {
		all.Go(func() { errs[1+i] = r.count(ctx, others[i], []P{page}) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// count adds a visit to the scores of others in the set of page.
func (r *Related[P]) count(ctx context.Context, page P, others []P) error {
	return write(ctx, r.room, "count pages seen with", page, func(full string, _ time.Time) error {
		cmds := make([]redis.Cmder, 0, len(others)+2)
		for _, other := range others {
			member, err := r.room.Codec.Append(nil, other)
			if err != nil {
				return err
			}
			cmds = append(cmds, redis.NewFloatCmd(ctx, "zincrby", full, 1, member))
		}
		ttl := r.room.Jitter.TTL(r.room.TTL)
		return sendonce.Transact(ctx, r.room.redis, full, sendonce.SortedSet, append(cmds,
			redis.NewCmd(ctx, "zremrangebyrank", full, 0, r.last),
			redis.NewCmd(ctx, "pexpire", full, ttl.Milliseconds()))...)
	})
}

// Top returns the pages that were most often seen in the same visits as page, at most n, the most frequent first, without those seen in
// fewer than [RelatedOptions].MinVisits visits. A page that was seen with no other has none; that is not an error.
func (r *Related[P]) Top(ctx context.Context, page P, n int) ([]P, error) {
	return read(ctx, r.room, "read pages seen with", page, n, func(full string) ([]string, error) {
		top := redis.NewZSliceCmd(ctx, "zrevrange", full, 0, n-1, "withscores")
		r.room.redis.Ask(ctx, full, top)
		others, err := top.Result()
		var often []string
		for _, other := range others {
			if member, is := other.Member.(string); is && other.Score >= r.least {
				often = append(often, member)
			}
		}
		return often, err
	})
}
