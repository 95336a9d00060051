package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/background"
)

var errClosed = errors.New("closed")

func Example_background() {
	g := background.New(errors.New("closed"))
	g.Start(func() { fmt.Println("working") })
	fmt.Println(g.Close(context.Background()), g.Err(), g.Start(func() { fmt.Println("never") }))
	// Output:
	// working
	// <nil> closed false
}

func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := background.New(errClosed)
		begun := time.Now()
		g.Start(func() {
			<-g.Closing()
			g.More() // another hand, though nothing may start any more
			go func() {
				defer g.Done()
				time.Sleep(time.Second)
			}()
		})
		if err := g.Close(t.Context()); err != nil || time.Since(begun) != time.Second {
			t.Errorf("closed after %v: %v", time.Since(begun), err)
		}
		if err := g.Close(t.Context()); err != nil || g.Context().Err() == nil {
			t.Errorf("closed again: %v; its context: %v", err, g.Context().Err())
		}
	})
}

// The last tasks are done after the group's end, within its grace.
func TestTheLastThing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for takes, want := range map[time.Duration]error{time.Second: nil, time.Minute: context.DeadlineExceeded} {
			g, done := background.New(errClosed), make(chan error, 1)
			g.Grace = 2 * time.Second
			g.Start(func() {
				ctx, cancel := g.On(t.Context())
				defer cancel()
				if last, cancel := g.Last(ctx); last != ctx {
					cancel()
					t.Error("before the end it is the work's own context")
				}
				<-ctx.Done()
				last, cancel := g.Last(ctx)
				defer cancel()
				select {
				case <-time.After(takes):
				case <-last.Done():
				}
				done <- last.Err()
			})
			now, cancel := context.WithCancel(t.Context())
			cancel()
			synctest.Wait() // it has begun
			begun := time.Now()
			if err := g.Close(now); !errors.Is(err, context.Canceled) || time.Since(begun) != min(takes, g.Grace) {
				t.Errorf("closed after %v: %v", time.Since(begun), err)
			}
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("what takes %v: %v", takes, err)
			}
		}
	})
}

func TestCloseWaitsNoLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := background.New(errClosed)
		caller, left := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		ended := make(chan error, 1)
		g.Start(func() {
			ctx, cancel := g.On(caller)
			defer cancel()
			left() // a caller who leaves does not end the work
			if synctest.Wait(); ctx.Err() != nil || ctx.Value(key{}) != "value" {
				t.Errorf("the work's context: %v, %v", ctx.Err(), ctx.Value(key{}))
			}
			<-ctx.Done()
			ended <- context.Cause(ctx)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v", err)
		}
		if err := <-ended; err != errClosed {
			t.Errorf("the work ended because: %v", err)
		}
	})
}

type key struct{}
