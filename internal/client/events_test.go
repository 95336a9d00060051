package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/events"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

type printer struct{}

func (printer) Observe(_ context.Context, e mayfly.Event) {
	fmt.Println(e.Namespace, e.Kind, e.Outcome, e.Err)
}

func Example_events() {
	tell := events.To(printer{}, "users")
	tell.Backend(context.Background(), "user:7", nodes.ErrSlow)
	tell.Backend(context.Background(), "user:7", errors.New("connection refused"))
	tell.Breaker("redis:6379", true)
	tell.Breaker("redis:6379", false)

	events.To(nil, "users").Breaker("redis:6379", true) // nobody listens
	// Output:
	// users backend timed_out redis did not answer in time
	// users backend failed connection refused
	// users breaker failed redis:6379 will not be asked for a while
	// users breaker ok <nil>
}
