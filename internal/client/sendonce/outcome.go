package sendonce

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/again"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// Answer returns what the error of a question about the key full means: nil, [mayfly.ErrNotFound], or that there was no answer. If the key
// holds another type, the error names that type.
func Answer(ctx context.Context, rdb Bounded, full string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return mayfly.ErrNotFound
	case strings.Contains(err.Error(), "WRONGTYPE"): // miniredis puts it in the middle of a script's error
		holds, what := redis.NewStatusCmd(ctx, "type", full), "another type"
		if rdb.Process(ctx, holds) == nil {
			what = "a " + holds.Val()
		}
		return fmt.Errorf("the key holds %s of %w: %w", what, mayfly.ErrForeign, err)
	}
	return err
}

// Outcome returns what the error of a command that was sent once, or of a pipeline that has one, means. The error wraps
// [mayfly.ErrUnknownOutcome] unless the server answered or the command was certainly never sent.
func Outcome(ctx context.Context, rdb Bounded, full string, err error) error {
	op, ok := errors.AsType[*net.OpError](err)
	if ok && op.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) || errors.Is(err, redis.ErrClosed) || nodes.Unsent(err) {
		return err // it waited in vain for a connection, or was not allowed to wait
	}
	if _, answered := errors.AsType[redis.Error](err); answered || err == nil {
		return Answer(ctx, rdb, full, err)
	}
	return fmt.Errorf("%w: %w", mayfly.ErrUnknownOutcome, err)
}

// Rest waits after a lost race: the longer the more often the caller has lost, up to a few milliseconds.
func Rest(ctx context.Context, try int) error {
	most := time.Duration(min(try, 16)) * 250 * time.Microsecond
	return again.Sleep(ctx, rand.N(most+1))
}
