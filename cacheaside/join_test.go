package cacheaside_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// An Event reports each caller that waits for a load of another caller in its process.
func TestJoiningALoadIsAnEvent(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var events expect.Events
		ns := namespace(t, rdb)
		ns.Observer = &events
		ended := make(chan struct{})
		c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
			<-ended
			return user{"u", 1}, nil
		}, cacheaside.Options{}))
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if i%2 == 0 {
					c.Get(t.Context(), 7)
				} else {
					c.GetMany(t.Context(), []int{7})
				}
			})
		}
		wait := time.After(500 * time.Millisecond)
		<-wait
		close(ended)
		wg.Wait()
		if n := events.Count(mayfly.KindJoin, mayfly.OutcomeOK); n != 9 {
			t.Errorf("%d joined", n)
		}
		c.Get(t.Context(), 7)
		if n := events.Count(mayfly.KindJoin, mayfly.OutcomeOK); n != 9 {
			t.Errorf("a hit joined something: %d", n)
		}
	})
}
