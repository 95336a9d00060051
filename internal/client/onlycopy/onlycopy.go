// Package onlycopy is what the patterns share in which Redis holds the only copy: the keys of a namespace, commands that are
// sent once, and what an error means. There, "absent" and "down" are different answers, and a write whose reply was
// lost is neither: the caller is told that nobody knows.
package onlycopy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/keyform"
)

// Room is a namespace, checked, as a pattern uses it.
type Room[K comparable, V any] struct {
	mayfly.Namespace[K, V]
	pattern string
	form    keyform.Form[K]
}

// Of checks ns for a pattern of this name, which begins its errors.
func Of[K comparable, V any](pattern string, ns mayfly.Namespace[K, V]) (Room[K, V], error) {
	if err := ns.Validate(); err != nil {
		return Room[K, V]{}, fmt.Errorf("%s: %w", pattern, err)
	}
	if ns.Codec == nil {
		ns.Codec = mayfly.DefaultCodec[V]()
	}
	form, err := keyform.Of(ns.Key)
	return Room[K, V]{ns, pattern, form}, err
}

// FullKey returns the key as Redis knows it.
func (r Room[K, V]) FullKey(key K) (string, error) {
	const room = 24 // for the text of most keys
	full, err := r.form(append(make([]byte, 0, len(r.Prefix)+room), r.Prefix...), key)
	return unsafe.String(unsafe.SliceData(full), len(full)), err // nobody writes to full again
}

// Fail wraps err, once, with what was done to which key. Nil stays nil.
func (r Room[K, V]) Fail(doing string, key any, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %q: %w", r.pattern, doing, fmt.Sprint(key), err)
}

// Explain is what a reply to a question about full means. See [Answer]; a key that holds another type is named.
func (r Room[K, V]) Explain(ctx context.Context, full string, err error) error {
	return r.Typed(ctx, full, Answer(err))
}

// ExplainWrite is what a reply to a write of full means. See [Outcome]; a key that holds another type is named.
func (r Room[K, V]) ExplainWrite(ctx context.Context, full string, err error) error {
	return r.Typed(ctx, full, Outcome(err))
}

// Typed adds to the error of a command that met another type which one full holds.
func (r Room[K, V]) Typed(ctx context.Context, full string, err error) error {
	if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") { // miniredis has it in the middle of a script's error
		return err
	}
	if holds, typeErr := r.Redis.Type(ctx, full).Result(); typeErr == nil {
		return fmt.Errorf("the key holds a %s of somebody else's, and was left alone: %w", holds, err)
	}
	return err
}

// Answer is what the error of a question means: nil, [mayfly.ErrNotFound], or that there was no answer.
func Answer(err error) error {
	if errors.Is(err, redis.Nil) {
		return mayfly.ErrNotFound
	}
	return err
}

// Outcome is what the error of a command made by [Once], or of a pipeline that has one, means. [mayfly.ErrUnknownOutcome]
// is in it unless the server answered, or the command was certainly never sent.
func Outcome(err error) error {
	var reply redis.Error
	var op *net.OpError
	switch {
	case err == nil, errors.As(err, &reply), errors.Is(err, redis.TxFailedErr):
		return Answer(err)
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.Is(err, redis.ErrClosed):
		return err // it waited for a connection, and got none
	}
	return fmt.Errorf("%w: %w", mayfly.ErrUnknownOutcome, err)
}

// Repeated is what the error of a write means that go-redis repeats after a lost reply, as it does by default. Without an
// answer to the last try, an earlier one may have been done.
func Repeated(err error) error {
	var reply redis.Error
	if err == nil || errors.As(err, &reply) {
		return Answer(err)
	}
	return fmt.Errorf("%w: %w", mayfly.ErrUnknownOutcome, err)
}

// once is a command that go-redis does not repeat when the reply is lost. One in a pipeline is enough for all.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// Once returns a command that is sent at most once, whatever the client's retries.
func Once(ctx context.Context, args ...any) Command { return once{redis.NewCmd(ctx, args...)} }

// Command is what Once returns.
type Command interface {
	redis.Cmder
	Result() (any, error)
	Int64() (int64, error)
	Text() (string, error)
}
