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
// holds another type, the error names the key and that type.
func Answer(ctx context.Context, rdb Bounded, full string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return mayfly.ErrNotFound
	case WrongType(err):
		return foreign(ctx, rdb, []string{full}, func(string) bool { return false }, err)
	}
	return err
}

// WrongType reports whether the server answered that a key holds another type.
func WrongType(err error) bool {
	return err != nil && strings.Contains(err.Error(), "WRONGTYPE") // miniredis puts it in the middle of a script's error
}

// foreign says which of the keys fulls hold another type, and which type that is. The key may have ended since the server said so.
func foreign(ctx context.Context, rdb Bounded, fulls []string, ours func(kind string) bool, err error) error {
	asks := make([]redis.Cmder, len(fulls))
	for i, full := range fulls {
		asks[i] = redis.NewStatusCmd(ctx, "type", full)
	}
	rdb.Each(ctx, fulls, asks)
	var hold []string
	gone := true
	for i, ask := range asks {
		gone = gone && ask.Err() == nil
		if kind := ask.(*redis.StatusCmd).Val(); ask.Err() == nil && kind != "none" && !ours(kind) {
			hold = append(hold, fmt.Sprintf("%q holds a %s", fulls[i], kind))
		}
	}
	which := fmt.Sprintf("the key %q", fulls[0])
	if len(fulls) > 1 {
		which = fmt.Sprintf("one of the keys %q", fulls)
	}
	switch {
	case len(hold) > 0:
		return fmt.Errorf("the key %s of %w: %w", strings.Join(hold, ", and the key "), mayfly.ErrForeign, err)
	case gone:
		return fmt.Errorf("%s held another type, and no longer does: it was %w: %w", which, mayfly.ErrForeign, err)
	}
	return fmt.Errorf("%s holds another type of %w: %w", which, mayfly.ErrForeign, err)
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

// OutcomeOf is [Outcome] for a script about strings under several keys of one server.
func OutcomeOf(ctx context.Context, rdb Bounded, fulls []string, err error) error {
	if WrongType(err) {
		return foreign(ctx, rdb, fulls, func(kind string) bool { return kind == "string" }, err)
	}
	return Outcome(ctx, rdb, fulls[0], err)
}

// Rest waits after a lost race. The more often the caller has lost, the longer it waits, up to a few milliseconds.
func Rest(ctx context.Context, try int) error {
	most := time.Duration(min(try, 16)) * 250 * time.Microsecond
	return again.Sleep(ctx, rand.N(most+1))
}
