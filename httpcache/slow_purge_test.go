package httpcache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// A Redis whose answers take long is waited for once, and is given more time when the purge is repeated.
func TestAPurgeTakesOneTimeout(t *testing.T) {
	for _, name := range []string{"URL", "Tag"} {
		targets := failedTargets[name]
		synctest.Test(t, func(t *testing.T) {
			srv, opt, _ := impatient(t)
			far := redis.NewClient(srv.Options())
			defer far.Close()
			opt.Namespace.Redis = far
			c, near := opened(t, opt), opened(t, options(t, srv.Client()))
			page := newVersions("Cache-Control: max-age=600", "Surrogate-Key: p-1", `Cache-Groups: "g-1"`)
			theirs := near.Handler(page)
			get(t, theirs, failedURL)
			page.version++
			expect.OK(t, far.Ping(t.Context()).Err()) // it has a connection
			far.AddHook(distance(60 * time.Millisecond))
			begun := time.Now()
			err := c.Purge(t.Context(), targets...)
			if took := time.Since(begun); took > opt.RedisTimeout+10*time.Millisecond {
				t.Errorf("%s: it took %v: %v", name, took, err)
			}
			time.Sleep(5 * time.Second)
			if body, status := get(t, theirs, failedURL); body != "/p/1 v1 " {
				t.Errorf("%s, %v: then another process serves %s: %s", name, err, body, status)
			}
		})
	}
}

// distance is how long each trip takes.
type distance time.Duration

func (d distance) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d distance) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		select {
		case <-time.After(time.Duration(d)):
			return next(ctx, cmd)
		case <-ctx.Done():
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}
	}
}

func (d distance) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "hello" || cmds[0].Name() == "client" { // a connection is made: that is not what this is about
			return next(ctx, cmds)
		}
		if err := d.ProcessHook(func(context.Context, redis.Cmder) error { return nil })(ctx, cmds[0]); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}
