// Package expect has expectations shared by the tests of several packages: a call without an error, something that happens in time, and events.
//
//	n := expect.Value(visits.Len(ctx, "ada"))(t)
//	expect.Eventually(t, "the copy is gone", func() bool { return local.Stats().Entries == 0 })
package expect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
)

// OK ends the test if err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Value returns a function that returns v, or ends the test if err is not nil.
func Value[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Panic runs do, which must panic with a text that contains want.
func Panic(t testing.TB, want string, do func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if said := fmt.Sprint(recover()); !strings.Contains(said, want) {
			t.Errorf("it panicked with %q, want %q", said, want)
		}
	}()
	do()
}

// Eventually calls ok repeatedly until it returns true. It is for the work of other goroutines and processes that do not report their progress. It
// ends the test after a minute.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !ok(); {
		select {
		case <-end:
			t.Fatalf("it did not happen in a minute: %s", what)
		case <-tick.C:
		}
	}
}

// Events is an observer that keeps all events.
type Events struct {
	mu  sync.Mutex
	all []mayfly.Event // guarded by mu
}

// Observe implements [mayfly.Observer].
func (s *Events) Observe(_ context.Context, e mayfly.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, e)
}

// All returns the events so far.
func (s *Events) All() []mayfly.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Count returns the number of events of a kind and outcome.
func (s *Events) Count(k mayfly.Kind, o mayfly.Outcome) (n int) {
	for _, e := range s.All() {
		if e.Kind == k && e.Outcome == o {
			n++
		}
	}
	return n
}

// Forget empties the collection.
func (s *Events) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = nil
}
