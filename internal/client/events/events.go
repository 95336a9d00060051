// Package events reports to a namespace's Observer what the patterns do.
package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// Teller hands an event to the observer of one namespace, with the namespace's name.
type Teller func(ctx context.Context, e mayfly.Event)

// To returns the Teller of a namespace. Without an observer it does nothing.
func To(observer mayfly.Observer, namespace string) Teller {
	if observer == nil {
		return func(context.Context, mayfly.Event) {}
	}
	return func(ctx context.Context, e mayfly.Event) {
		e.Namespace = namespace
		observer.Observe(ctx, e)
	}
}

// Backend reports that a request to Redis about key failed.
func (t Teller) Backend(ctx context.Context, key string, err error) {
	e := mayfly.Event{Kind: mayfly.KindBackend, Outcome: mayfly.OutcomeFailed, Key: key, Err: err}
	if errors.Is(err, nodes.ErrSlow) {
		e.Outcome = mayfly.OutcomeTimedOut
	}
	t(ctx, e)
}

// Breaker reports that the breaker of a server opened or closed.
func (t Teller) Breaker(server string, open bool) {
	e := mayfly.Event{Kind: mayfly.KindBreaker, Outcome: mayfly.OutcomeOK}
	if open {
		e.Outcome, e.Err = mayfly.OutcomeFailed, fmt.Errorf("%s will not be asked for a while", server)
	}
	t(context.Background(), e)
}

// Waited reports that n calls have waited for other calls of this process, the first one for took. With an err they waited in vain.
func (t Teller) Waited(ctx context.Context, took time.Duration, n int, err error) {
	e := mayfly.Event{Kind: mayfly.KindQueue, Outcome: mayfly.OutcomeOK, N: n, Took: took, Err: err}
	switch {
	case errors.Is(err, nodes.ErrOpen):
		e.Outcome = mayfly.OutcomeRefused
	case err != nil:
		e.Outcome = mayfly.OutcomeTimedOut
	}
	t(ctx, e)
}

// Warnings reports dangerous settings of a client.
func (t Teller) Warnings(of []string) {
	for _, w := range of {
		t(context.Background(), mayfly.Event{Kind: mayfly.KindWarning, Outcome: mayfly.OutcomeOK, Err: errors.New(w)})
	}
}

// Dropped reports that n keys were given up although their removal failed.
func (t Teller) Dropped(ctx context.Context, n int, why error) {
	t(ctx, mayfly.Event{Kind: mayfly.KindRemoval, Outcome: mayfly.OutcomeDropped, N: n, Err: why})
}

// Done reports e, which began at begun and ends now. With an Err and no outcome of its own it has failed.
func (t Teller) Done(ctx context.Context, e mayfly.Event, begun time.Time) {
	if e.Outcome == "" && e.Err != nil {
		e.Outcome = mayfly.OutcomeFailed
	}
	e.Took, e.Outcome = time.Since(begun), cmp.Or(e.Outcome, mayfly.OutcomeOK)
	t(ctx, e)
}
