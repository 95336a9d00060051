package sliding_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/sliding"
)

// A process that is killed while it writes leaves no key without an end.
func TestAProcessThatIsKilled(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	processes.Kill(t, 20, "writer", srv.Addr())
	processes.EachKey(t, srv.Client(), 100, func(string) {})
}

func init() { processes.Roles["writer"] = writeForever }

// writeForever is the process: it creates and changes values and counters of all kinds all the time.
func writeForever() int {
	rdb, ctx := processes.Dial(), context.Background()
	var stores []*sliding.Store[string, cart]
	for i, way := range ways {
		ns := namespace(rdb)
		ns.Prefix = fmt.Sprint("cart:", i, ":")
		stores = append(stores, mayfly.Must(sliding.New(ns, way.opt)))
	}
	fixed := mayfly.Must(sliding.NewLimiter(calls(rdb, time.Hour), sliding.LimiterOptions{RedisTimeout: patient, Limit: 10}))
	slides := calls(rdb, time.Hour)
	slides.Prefix = "slides:"
	slide := mayfly.Must(sliding.NewLimiter(slides, sliding.LimiterOptions{RedisTimeout: patient, Limit: 10, Sliding: true}))
	slides.Prefix = "strict:"
	strict := mayfly.Must(sliding.NewLimiter(slides, sliding.LimiterOptions{RedisTimeout: patient, Limit: 10, Strict: true}))
	return processes.Forever(func() {
		for _, s := range stores {
			key := fmt.Sprint(rand.Uint64())
			s.Create(ctx, key, cart{})
			s.Get(ctx, key)
			s.Update(ctx, key, func(c cart) (cart, error) { c.Count++; return c, nil })
			s.Rotate(ctx, key, key+"r")
			s.Touch(ctx, key+"r")
			s.Set(ctx, key, cart{Count: 2})
		}
		key := fmt.Sprint(rand.Uint64())
		fixed.Allow(ctx, key, 1)
		slide.Allow(ctx, key, 1)
		strict.Allow(ctx, key, 1)
	})
}
