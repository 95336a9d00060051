package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/background"
	"github.com/mayflycache/mayfly/internal/client/redelete"
)

var errDown = errors.New("down")

// server is a Redis that can be down.
type server struct {
	down           atomic.Bool
	tried, dropped atomic.Int32
	during         func()
}

func (s *server) again(_ context.Context, keys []string) ([]string, error) {
	s.tried.Add(1)
	if s.during != nil {
		s.during()
	}
	if s.down.Load() {
		return nil, errDown
	}
	return keys, nil
}

func inDoubt(t *testing.T, test func(t *testing.T, d *redelete.Queue, s *server, w *background.Group)) {
	synctest.Test(t, func(t *testing.T) {
		s, w := &server{}, background.New(errors.New("closed"))
		s.down.Store(true)
		d := redelete.New(redelete.Options{Limit: 2, Works: w, Again: s.again, Dropped: func(_ context.Context, n int, _ error) { s.dropped.Add(int32(n)) }})
		test(t, d, s, w)
		w.Close(context.Background())
	})
}

func TestWhatFailedIsTriedAgain(t *testing.T) {
	inDoubt(t, func(t *testing.T, d *redelete.Queue, s *server, _ *background.Group) {
		d.Add(t.Context(), errDown, "a", "b", "a", "c")
		if got := []bool{d.Has("a"), d.Has("b"), d.Has("c")}; !slices.Equal(got, []bool{true, true, false}) || s.dropped.Load() != 1 {
			t.Errorf("in doubt: %v, dropped: %d", got, s.dropped.Load())
		}
		for key, want := range map[string]bool{"b": true, "c": false} {
			if d.Find(func(queued string) bool { return queued == key }) != want {
				t.Errorf("found %s: %v", key, !want)
			}
		}
		time.Sleep(3*redelete.Every + time.Millisecond)
		if s.tried.Load() != 3 || !d.Any() {
			t.Errorf("tried %d times", s.tried.Load())
		}
		s.down.Store(false)
		time.Sleep(redelete.Every)
		if d.Any() || d.Has("a") {
			t.Error("what was removed is still in doubt")
		}
		time.Sleep(time.Hour)
		if s.tried.Load() != 5 { // after failures one at a time
			t.Errorf("nothing was in doubt, and it was tried %d times", s.tried.Load())
		}
		d.Add(t.Context(), errDown, "c")
		time.Sleep(redelete.Every + time.Millisecond)
		if s.tried.Load() != 6 || d.Any() {
			t.Errorf("the next doubt was tried %d times", s.tried.Load()-5)
		}
	})
}

// Removals that are too many for one attempt are done in several, and those that cannot be done do not hold up the others.
func TestAsManyAtOnceAsCanBeDone(t *testing.T) {
	for _, atOnce := range []int{1, 3, 100, 10_000} {
		synctest.Test(t, func(t *testing.T) {
			works := background.New(errors.New("closed"))
			var down atomic.Bool
			var trips, dropped atomic.Int32
			down.Store(true)
			q := redelete.New(redelete.Options{
				Limit: 10_000,
				Works: works,
				Again: func(_ context.Context, keys []string) (done []string, err error) {
					if trips.Add(1); down.Load() || len(keys) > atOnce {
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
				Dropped: func(_ context.Context, n int, _ error) { dropped.Add(int32(n)) },
			})
			for i := range 3000 {
				q.Add(t.Context(), errors.New("down"), fmt.Sprint("k", i))
			}
			q.Add(t.Context(), errors.New("down"), "bad")
			time.Sleep(time.Minute)
			if n := trips.Swap(0); int(n) > int(time.Minute/redelete.Every) {
				t.Errorf("%d trips to a Redis that was down for a minute", n)
			}
			down.Store(false)
			time.Sleep(time.Minute)
			if q.Len() != 1 || !q.Has("bad") {
				t.Errorf("at most %d at once: %d are left after a minute", atOnce, q.Len())
			}
			if most := 2*3000/min(atOnce, 512) + 200; int(trips.Load()) > most {
				t.Errorf("at most %d at once: %d trips, expected at most %d", atOnce, trips.Load(), most)
			}
			works.Close(t.Context())
			synctest.Wait()
			if n := dropped.Load(); n != 1 {
				t.Errorf("%d were dropped", n)
			}
		})
	}
}

// A removal that fails while an older one of the same key is being repeated is not settled by it.
func TestADeleteThatFailsAgainMeanwhileStaysInDoubt(t *testing.T) {
	inDoubt(t, func(t *testing.T, d *redelete.Queue, s *server, _ *background.Group) {
		s.down.Store(false)
		s.during = func() {
			s.during = nil
			d.Add(t.Context(), errDown, "a")
		}
		d.Add(t.Context(), errDown, "a", "b")
		time.Sleep(redelete.Every + time.Millisecond)
		if !d.Has("a") || d.Has("b") {
			t.Errorf("in doubt: a %v, b %v", d.Has("a"), d.Has("b"))
		}
		d.Remove(d.Mark(), "a")
		if d.Any() {
			t.Error("what was removed by hand is still in doubt")
		}
	})
}

func TestClosingTriesOnceMore(t *testing.T) {
	inDoubt(t, func(t *testing.T, d *redelete.Queue, s *server, w *background.Group) {
		d.Add(t.Context(), errDown, "a", "b")
		w.Close(t.Context())
		if s.tried.Load() != 1 || s.dropped.Load() != 2 {
			t.Errorf("tried %d times, dropped %d", s.tried.Load(), s.dropped.Load())
		}
		n := d.Add(t.Context(), errDown, "a") // nobody is left to do it, and it stays in doubt
		if !d.Has("a") {
			t.Error("a doubt that came after the end is forgotten")
		}
		if n != 1 || s.dropped.Load() != 3 {
			t.Errorf("%d are reported as dropped, %d in all", n, s.dropped.Load())
		}
	})
}

// A removal that began before another one failed does not settle that one: the value may have been stored again in between.
func TestAnOlderRemovalDoesNotSettleALaterDoubt(t *testing.T) {
	inDoubt(t, func(t *testing.T, d *redelete.Queue, s *server, _ *background.Group) {
		before := d.Mark()
		d.Add(t.Context(), errDown, "a")
		d.Remove(before, "a")
		if !d.Has("a") {
			t.Error("it is settled by a removal that may be older")
		}
		d.Remove(d.Mark(), "a")
		if d.Any() {
			t.Error("it is not settled by a later one")
		}
	})
}
