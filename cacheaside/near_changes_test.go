package cacheaside_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

func TestHowManyPushesALoadCosts(t *testing.T) {
	inTheNear(t, nil, func(t *testing.T, n *nearby) {
		c := must[int, user](t)(cacheaside.New(n.ns, n.load, cacheaside.Options{Early: earlyrefresh.Window(0.5)}))
		ctx := t.Context()
		for _, step := range []struct {
			name string
			do   func()
			want uint64
		}{
			{"a load: the lease, the fill", func() { c.Get(ctx, 7) }, 2},
			{"a hit in Redis", func() { c.Get(ctx, 7) }, 0},
			{"local hits", func() { c.Get(ctx, 7); c.Get(ctx, 7) }, 0},
			{"a renewal: the fill, as its lock is outside of the prefixes", func() { time.Sleep(40 * time.Second); c.Get(ctx, 7) }, 1},
			{"Set", func() { c.Set(ctx, 7, user{"set", 1}) }, 1},
			{"Delete", func() { c.Delete(ctx, 7) }, 1},
			{"a load of a batch of ten", func() { c.GetMany(ctx, []int{11, 12, 13, 14, 15, 16, 17, 18, 19, 20}) }, 20},
		} {
			before := n.local.Stats().Changes
			step.do()
			synctest.Wait()
			if pushes := n.local.Stats().Changes - before; pushes != step.want {
				t.Errorf("%s: %d pushes, want %d", step.name, pushes, step.want)
			}
		}
	})
}

// When no push arrives, and until that is noticed.
func TestOwnWritesAreSeenAtOnce(t *testing.T) {
	inTheNear(t, nil, func(t *testing.T, n *nearby) {
		c := must[int, user](t)(cacheaside.New(n.ns, n.load, cacheaside.Options{Early: earlyrefresh.Never}))
		got(t, c, 1)
		got(t, c, 1)
		n.srv.DropInvalidations(true)
		defer n.srv.DropInvalidations(false)
		if c.Delete(t.Context(), 7); source(t, c) != "" {
			t.Error("after Delete there is a copy")
		}
		got(t, c, 2)
		if s := source(t, c); s != mayfly.OutcomeHitRedis {
			t.Errorf("what was loaded was copied without having been read: source %v", s)
		}
		got(t, c, 2)
		c.Set(t.Context(), 7, user{"set", 9})
		got(t, c, 9)
		got(t, c, 9)
		c.Clear(t.Context())
		if s := source(t, c); s != "" {
			t.Errorf("after Clear: source %v", s)
		}
	})
}

// between calls do once, after the next reply to a pipeline and before it is read.
type between struct{ do func() }

func (b *between) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (b *between) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (b *between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if do := b.do; do != nil && cmds[0].Name() == "get" {
			b.do = nil
			do()
		}
		return err
	}
}

func TestWhatChangedWhileItWasReadIsNotCopied(t *testing.T) {
	for name, get := range map[string]func(ctx context.Context, c *cacheaside.Cache[int, user]){
		"Get":     func(ctx context.Context, c *cacheaside.Cache[int, user]) { c.Get(ctx, 7) },
		"GetMany": func(ctx context.Context, c *cacheaside.Cache[int, user]) { c.GetMany(ctx, []int{7}) },
	} {
		inTheNear(t, nil, func(t *testing.T, n *nearby) {
			var b between
			n.rdb.AddHook(&b)
			c := must[int, user](t)(cacheaside.New(n.ns, n.load, cacheaside.Options{Early: earlyrefresh.Never}))
			got(t, c, 1)
			b.do = func() { n.other.Del(t.Context(), n.ns.Prefix+"7"); synctest.Wait() }
			get(t.Context(), c)
			if s := source(t, c); s != "" || n.local.Stats().Outdated != 1 {
				t.Errorf("%s: source %v, %+v", name, s, n.local.Stats())
			}
		})
	}
}

func TestAKeyInDoubtIsNotCopied(t *testing.T) {
	var c *cacheaside.Cache[int, user]
	inTheNear(t, func(n *nearby) {
		n.ns.Observer = mayfly.ObserverFunc(func(ctx context.Context, e mayfly.Event) {
			if e.Kind == mayfly.KindRemoval && e.Outcome == mayfly.OutcomeFailed { // has failed, and is not in doubt yet
				c.Get(ctx, 7)
			}
		})
	}, func(t *testing.T, n *nearby) {
		c = must[int, user](t)(cacheaside.New(n.ns, n.load, cacheaside.Options{Early: earlyrefresh.Never}))
		got(t, c, 1)
		n.srv.FailNext("del", "NOPERM not today")
		if err := c.Delete(t.Context(), 7); err == nil {
			t.Fatal("Delete did not fail")
		}
		got(t, c, 2)
	})
}
