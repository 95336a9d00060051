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
	// Kept is how many others are kept of each page, those seen with it most often. Zero is 100.
	Kept int

	// MinVisits is in how many visits two pages must have been seen together before Top shows them. Fewer visits may all be of one user,
	// who came back or clicked twice. Zero is 3; 1 shows everything to everybody, for pages that are all public.
	MinVisits int

	// PerVisit bounds the other pages of a visit with which a page is counted. Zero is 8.
	PerVisit int

	// RedisTimeout is how long one question to Redis may take, as in [Options]. Zero is 150 ms.
	RedisTimeout time.Duration
}

// Related counts which pages are seen in the same visits, "so that you can recommend related products". P is what is recommended,
// such as the number of a product. Do not count personal pages, such as an order or a search: a counted page is shown to
// everybody who sees the other one, once it was seen in [RelatedOptions].MinVisits visits, be they of one user. It is safe for concurrent use, starts no goroutine and needs no Close.
//
// Each page has a sorted set of the others, by the number of visits in which both were seen. A set is bounded and has the
// namespace's TTL, counted from the last visit that saw its page, so that what nobody looks at any more is forgotten. Every write is
// MULTI, ZINCRBY, ZREMRANGEBYRANK, PEXPIRE, EXEC about one key, which a cluster has on one node. When a set is full, a newcomer takes
// the place of another that was seen once, or is not kept.
//
// # Memory
//
// A set takes, of Redis 8, at most
//
//	200 + len(key) + Kept x (1.25 x len(member) + 10) bytes  if Kept + PerVisit <= 128 and members have 64 bytes at most
//	300 + len(key) + Kept x (len(member) + 120) bytes        otherwise
//
// so 100 others of 8 bytes take 2.2 kB a page at most, and those of 100,000 products 220 MB.
type Related[P comparable] struct {
	room     room[P, P]
	perVisit int
	least    float64
	last     any // the rank of the last that is not kept
}

// NewRelated returns the related pages of ns, under whose keys a page's sets are; its members are what the codec writes. It does no I/O.
// The namespace has no Local tier, and no Plain, Clone and Cost, which would mean nothing.
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

// Record counts a page that was seen after earlier ones of the same visit, the newest first as [Visits.Recent] returns them. A page
// that is among the earlier was counted when it was seen first, and is not again. At most PerVisit of them are counted, so
// at most PerVisit + 1 sets are written, side by side; where that matters, count in the background. After an error some may have been.
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

// Top returns the pages that were seen most often in the same visits as page, n at most, the most often seen first, and none that was seen in
// fewer than [RelatedOptions].MinVisits. A page that was seen with no other has none, which is no error.
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
