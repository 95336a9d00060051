package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
)

// twice sends every command that may be repeated a second time and returns the second reply, as a client does that lost the first.
type twice struct{}

func (twice) DialHook(next redis.DialHook) redis.DialHook { return next }

func (twice) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := next(ctx, cmd); cmd.NoRetry() {
			return err
		}
		cmd.SetErr(nil)
		return next(ctx, cmd)
	}
}

func (twice) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if cmd.NoRetry() {
				return err
			}
			cmd.SetErr(nil)
		}
		return next(ctx, cmds)
	}
}

func TestARepeatedCommandKnowsItsOwnToken(t *testing.T) {
	defer func() { ending = false }()
	for i, plain := range []bool{false, true, false} {
		ending = i == 2
		rdb := backends.LongLeases(t, mini(t)).(*redis.Client)
		rdb.AddHook(twice{})
		o := lease.Options{Redis: rdb, Timeout: 5 * time.Second, Plain: plain}
		g, ctx := lease.New(o), t.Context()

		c := claim(t, g, "k", lease.Found{})
		if !fill(t, o, c, "v") {
			t.Errorf("plain %v: the repeated fill calls itself refused", plain)
		}
		seen := look(t, g, "k")
		r := g.Renew(ctx, "k", seen)
		if r.Claim == nil {
			t.Fatalf("plain %v: the repeated lock calls itself lost", plain)
		}
		if !fill(t, o, r.Claim, "w") {
			t.Errorf("plain %v: the repeated renewal calls itself refused", plain)
		}
		seen = look(t, g, "k")
		c = claim(t, g, "k", seen)
		if !fill(t, o, c, "x") || body(t, g, "k") != "x" {
			t.Errorf("plain %v: the repeated replacement", plain)
		}
	}
}
