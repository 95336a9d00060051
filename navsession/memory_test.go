package navsession_test

import (
	"fmt"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/navsession"
)

// The formula of Related's doc comment bounds what a real Redis says.
func TestMemoryOfRelated(t *testing.T) {
	rdb := realredis.Start(t, realredis.Options{}).Client()
	for _, c := range []struct{ kept, perVisit, member int }{
		{1, 1, 1}, {3, 8, 8}, {100, 8, 8}, {100, 8, 64}, {120, 8, 20}, // small
		{100, 8, 65}, {121, 8, 8}, {1000, 8, 8}, {1025, 8, 8}, {1000, 100, 30}, {5000, 8, 100}, // large
	} {
		space := ns[string](t, rdb)
		space.Prefix = fmt.Sprintf("%d.%d.%d:", c.kept, c.perVisit, c.member)
		r := expect.Value(navsession.NewRelated(space, navsession.RelatedOptions{Kept: c.kept, PerVisit: c.perVisit, RedisTimeout: patient}))(t)
		for first := 0; first < c.kept+3*c.perVisit; first += c.perVisit {
			others := make([]string, c.perVisit)
			for i := range others {
				others[i] = "x" + fmt.Sprintf("%0*d", c.member, first+i)[1:] // no number, which a list packs tighter
			}
			if c.member == 1 {
				others[0] = string(rune('a' + first))
			}
			expect.OK(t, r.Record(t.Context(), "page", others...))
		}
		full := space.Prefix + "page"
		if n := rdb.ZCard(t.Context(), full).Val(); n != int64(c.kept) {
			t.Fatalf("%+v: %d are kept", c, n)
		}
		for _, member := range expect.Value(rdb.ZRange(t.Context(), full, 0, -1).Result())(t) {
			expect.OK(t, rdb.ZIncrBy(t.Context(), full, 1<<30, member).Err()) // a number of visits that takes its room
		}
		bound := 300 + len(full) + c.kept*(c.member+120)
		if c.kept+c.perVisit <= 128 && c.member <= 64 {
			bound = 200 + len(full) + c.kept*(c.member*5/4+10)
		}
		used := expect.Value(rdb.MemoryUsage(t.Context(), full, 0).Result())(t)
		t.Logf("%+v: %d bytes of %d, %s", c, used, bound, rdb.ObjectEncoding(t.Context(), full).Val())
		if used > int64(bound) || c.kept >= 100 && 2*used < int64(bound) {
			t.Errorf("%+v: %d bytes, the formula says %d", c, used, bound)
		}
	}
}
