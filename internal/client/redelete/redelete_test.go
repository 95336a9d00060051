package redelete

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/background"
)

// Removals that are too many for one attempt are done in several, and those that cannot be done do not hold up the others.
func TestAsManyAtOnceAsCanBeDone(t *testing.T) {
	for _, atOnce := range []int{1, 3, 100, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			works := background.New(errors.New("closed"))
			down, trips := true, 0
			var dropped int
			q := New(Options{
				Limit: 10_000,
				Works: works,
				Again: func(_ context.Context, keys []string) (done []string, err error) {
					if trips++; down || len(keys) > atOnce {
						return nil, errors.New("too slow")
					}
					for _, key := range keys {
						if key == "bad" {
							err = errors.New("refused")
						} else {
							done = append(done, key)
						}
					}
					return done, err
				},
				Dropped: func(_ context.Context, n int, _ error) { dropped += n },
			})
			for i := range 3000 {
				q.Add(t.Context(), errors.New("down"), fmt.Sprint("k", i))
			}
			q.Add(t.Context(), errors.New("down"), "bad")
			time.Sleep(time.Minute)
			if trips > int(time.Minute/Every) {
				t.Errorf("%d trips to a Redis that was down for a minute", trips)
			}
			down, trips = false, 0
			time.Sleep(time.Minute)
			if q.Len() != 1 || !q.Has("bad") {
				t.Errorf("at most %d at once: %d are left after a minute", atOnce, q.Len())
			}
			if most := 2*3000/min(atOnce, most) + 200; trips > most {
				t.Errorf("at most %d at once: %d trips, expected at most %d", atOnce, trips, most)
			}
			works.Close(t.Context())
			synctest.Wait()
			if dropped != 1 {
				t.Errorf("%d were dropped", dropped)
			}
		})
	}
}
