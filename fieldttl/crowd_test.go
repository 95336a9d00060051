package fieldttl_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// Many more callers than connections wait for one another, and that is all.
func TestACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		o := srv.Options()
		o.PoolSize, o.PipelinePoolSize = 20, -1
		rdb := redis.NewClient(o)
		defer rdb.Close()
		s := expect.Value(fieldttl.New(ns[session](t, rdb), fieldttl.Options{}))(t)
		srv.Latency(5 * time.Millisecond)
		var all sync.WaitGroup
		for i := range effort.Times(100, 1000) {
			all.Go(func() {
				ctx, key := t.Context(), fmt.Sprint("user", i)
				for _, step := range []struct {
					name string
					do   func() error
				}{
					{"Set", func() error { return s.Set(ctx, key, ada) }},
					{"SetFields", func() error { return s.SetFields(ctx, key, ada, "ip") }},
					{"Get", func() error { _, err := s.Get(ctx, key); return err }},
					{"GetAndTouchFields", func() error { _, err := s.GetAndTouchFields(ctx, key, "ip"); return err }},
					{"TouchFields", func() error { return s.TouchFields(ctx, key, "ip") }},
					{"PersistFields", func() error { return s.PersistFields(ctx, key, "ip") }},
					{"Touch", func() error { return s.Touch(ctx, key) }},
					{"TTLs", func() error { _, _, err := s.TTLs(ctx, key); return err }},
					{"Update", func() error {
						_, err := s.Update(ctx, key, func(e fieldttl.Entry[session]) (session, error) { return e.Value, nil }, "ip")
						return err
					}},
					{"DeleteFields", func() error { return s.DeleteFields(ctx, key, "ip") }},
					{"Delete", func() error { return s.Delete(ctx, key) }},
				} {
					if err := step.do(); err != nil {
						t.Errorf("%s: %v", step.name, err)
					}
				}
			})
		}
		all.Wait()
	})
}
