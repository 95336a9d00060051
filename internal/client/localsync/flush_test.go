package localsync_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// This is what coherence.md says about commands that change a whole database.
func TestWholeDatabasesChange(t *testing.T) {
	for _, flavour := range []realredis.Flavour{realredis.Redis8, realredis.Redis7, realredis.Valkey} {
		t.Run(flavour.String(), func(t *testing.T) {
			srv := realredis.Start(t, realredis.Options{Flavour: flavour})
			rdb, other := srv.Client(), srv.Client()
			far := srv.Options()
			far.DB = 7 // which is empty
			elsewhere := redis.NewClient(far)
			t.Cleanup(func() { rdb.Close(); other.Close(); elsewhere.Close() })
			n := open(t, rdb, nil)
			n.untilRung(localsync.Tracking)
			for name, c := range map[string]struct {
				do    func() error
				heard bool
			}{
				"FLUSHDB":                      {func() error { return other.FlushDB(t.Context()).Err() }, true},
				"FLUSHDB ASYNC":                {func() error { return other.FlushDBAsync(t.Context()).Err() }, true},
				"FLUSHDB of an empty database": {func() error { return elsewhere.FlushDB(t.Context()).Err() }, true},
				"FLUSHALL":                     {func() error { return other.FlushAll(t.Context()).Err() }, true},
				"SWAPDB":                       {func() error { return other.Do(t.Context(), "swapdb", 0, 3).Err() }, false},
			} {
				heard := n.Stats().Heard
				set(t, other, "a:1", "old")
				expect.Eventually(t, "the SET is heard", func() bool { return n.Stats().Heard > heard }) // and takes no copy away later
				n.copied("a:1", "old")
				flushes := n.Stats().Flushes
				expect.OK(t, c.do())
				if c.heard {
					expect.Eventually(t, "everything is dropped after "+name, func() bool { return n.Stats().Flushes > flushes && n.get("a:1") == "" })
					continue
				}
				set(t, other, "b:1", "v")
				n.copied("b:1", "v") // so earlier pushes have arrived
				n.want("a:1", "old")
				if now := rdb.Get(t.Context(), "a:1").Val(); now == "old" {
					t.Errorf("%s changed nothing", name)
				}
			}
		})
	}
}
