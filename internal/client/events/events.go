// Package events tells a namespace's Observer what the patterns do.
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

// Teller hands an event to the observer of one namespace, under the namespace's name.
type Teller func(ctx context.Context, e mayfly.Event)

// To returns the teller of a namespace. Without an observer it does nothing.
func To(observer mayfly.Observer, namespace string) Teller {
	if observer == nil {
		return func(context.Context, mayfly.Event) {}
	}
	return func(ctx context.Context, e mayfly.Event) {
		e.Namespace = namespace
		observer.Observe(ctx, e)
	}
}

// Backend tells that Redis could not be asked about key, or not as it should be.
func (t Teller) Backend(ctx context.Context, key string, err error) {
	e := mayfly.Event{Kind: mayfly.KindBackend, Outcome: mayfly.OutcomeFailed, Key: key, Err: err}
	if errors.Is(err, nodes.ErrSlow) {
		e.Outcome = mayfly.OutcomeTimedOut
	}
	t(ctx, e)
}

// Breaker tells that the breaker of a server opened or closed.
func (t Teller) Breaker(server string, open bool) {
	e := mayfly.Event{Kind: mayfly.KindBreaker, Outcome: mayfly.OutcomeOK}
	if open {
		e.Outcome, e.Err = mayfly.OutcomeFailed, fmt.Errorf("%s is not asked for a while", server)
	}
	t(context.Background(), e)
}

// Waited tells that n calls have waited for others of this process, the first of them for so long, and in vain if there is an err.
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

// Warnings tells what is dangerous in how a client is set up.
func (t Teller) Warnings(of []string) {
	for _, w := range of {
		t(context.Background(), mayfly.Event{Kind: mayfly.KindWarning, Outcome: mayfly.OutcomeOK, Err: errors.New(w)})
	}
}

// Dropped tells that n keys are forgotten though their removal failed.
func (t Teller) Dropped(ctx context.Context, n int, why error) {
	t(ctx, mayfly.Event{Kind: mayfly.KindRemoval, Outcome: mayfly.OutcomeDropped, N: n, Err: why})
}

// Done tells of e with the time that it has taken until now. An Err made it fail, unless it has another outcome.
func (t Teller) Done(ctx context.Context, e mayfly.Event, begun time.Time) {
	if e.Outcome == "" && e.Err != nil {
		e.Outcome = mayfly.OutcomeFailed
	}
	e.Took, e.Outcome = time.Since(begun), cmp.Or(e.Outcome, mayfly.OutcomeOK)
	t(ctx, e)
}
