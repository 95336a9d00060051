package sliding_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// A push comes when the master has made a change. A replica that lags still has the old value then, and a copy of that would stay. So reads go
// to masters, even with a client that prefers replicas.
func TestMastersAreRead(t *testing.T) {
	master, replica := redistest.Start(t), redistest.Start(t)
	want(t, mayfly.Must(sliding.New(namespace(replica.Client()), sliding.Options{})).Create(t.Context(), "ada", cart{Count: 1}), nil)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ReadOnly: true, ContextTimeoutEnabled: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: master.Addr()}, {Addr: replica.Addr()}}}}, nil
		},
	})
	defer rdb.Close()
	for _, way := range ways {
		s := mayfly.Must(sliding.New(namespace(rdb), way.opt))
		want(t, s.Create(t.Context(), "ada", cart{Count: 2}), nil)
		for what, read := range map[string]func(context.Context, string) (cart, error){"get": s.Get, "peek": s.Peek} {
			if c, err := read(t.Context(), "ada"); c.Count != 2 || err != nil {
				t.Errorf("%s, %s: got %+v, %v", way.name, what, c, err)
			}
		}
		if left, err := s.TTL(t.Context(), "ada"); left == 0 || err != nil {
			t.Errorf("%s: %v left, %v", way.name, left, err)
		}
		want(t, s.Delete(t.Context(), "ada"), nil)
	}
}

// All operations work on all shards of a ring.
func TestAllOfARing(t *testing.T) {
	addrs := map[string]string{}
	for i := range 3 {
		addrs[strconv.Itoa(i)] = redistest.Start(t).Addr()
	}
	rdb := redis.NewRing(&redis.RingOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	defer rdb.Close()
	s := mayfly.Must(sliding.New(namespace(rdb), sliding.Options{RedisTimeout: patient}))
	const values = 60
	for i := range values {
		want(t, s.Create(t.Context(), strconv.Itoa(i), cart{Count: i}), nil)
	}
	met := map[string]bool{}
	for item, err := range s.All(t.Context()) {
		if err != nil || item.Key != strconv.Itoa(item.Value.Count) {
			t.Fatalf("%+v, %v", item, err)
		}
		met[item.Key] = true
	}
	if len(met) != values {
		t.Errorf("%d of %d values were met", len(met), values)
	}
}
