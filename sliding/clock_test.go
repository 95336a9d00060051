package sliding_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// Redis's clock may go back, as at a failover to a server whose clock is behind. Then a value lives for one more MaxAge from its next access on,
// whatever that is.
func TestAClockThatGoesBackGivesOneMoreMaxAge(t *testing.T) {
	const age = time.Hour
	for name, access := range map[string]func(t *testing.T, s store) error{
		"Get":    func(t *testing.T, s store) error { _, err := s.Get(t.Context(), "ada"); return err },
		"Touch":  func(t *testing.T, s store) error { return s.Touch(t.Context(), "ada") },
		"Set":    setAda,
		"Update": updateAda,
		"Rotate": func(t *testing.T, s store) error {
			return errors.Join(rotateAda(t, s), s.Rotate(t.Context(), "bob", "ada"))
		},
	} {
		for _, below := range []float64{0, 0.5} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Start(t)
					s := mayfly.Must(sliding.New(namespace(srv.Client()), sliding.Options{MaxAge: age, TouchBelow: below}))
					want(t, createAda(t, s), nil)
					stepBack(t, srv, 10*age)
					want(t, access(t, s), nil)
					if left := srv.TTL("cart:ada"); left > idle {
						t.Errorf("unused, it lives for %v", left)
					}
					for begun := time.Now(); time.Since(begun) < age-time.Minute; {
						time.Sleep(time.Minute)
						if _, err := s.Get(t.Context(), "ada"); err != nil {
							t.Fatalf("after %v: %v", time.Since(begun), err)
						}
					}
					time.Sleep(time.Minute)
					_, err := s.Get(t.Context(), "ada")
					want(t, err, mayfly.ErrNotFound)
				})
			})
		}
	}
}

// stepBack sets the clock of srv back by d.
func stepBack(t *testing.T, srv *redistest.Server, d time.Duration) {
	t.Helper()
	now, err := srv.Client().Time(t.Context()).Result()
	want(t, err, nil)
	srv.SetTime(now.Add(-d))
}

// As soon as a value is accessed, the TTL that it seems to have left is at most the namespace's.
func TestAClockThatGoesBackGivesOneMoreTTL(t *testing.T) {
	inTime(t, func(t *testing.T, s store, o sliding.Options, srv *redistest.Server) {
		want(t, createAda(t, s), nil)
		stepBack(t, srv, 10*time.Hour)
		if _, err := s.Get(t.Context(), "ada"); err != nil {
			t.Error(err)
		}
		time.Sleep(idle + time.Millisecond)
		_, err := s.Get(t.Context(), "ada")
		want(t, err, mayfly.ErrNotFound)
	})
}

// Calls admitted before the clock went back still count: no step grants a new limit, and nobody waits for the clock to catch up.
func TestALimiterWhoseClockGoesBack(t *testing.T) {
	t.Parallel()
	effort.Alone(t)
	const limit, window = 10, time.Minute
	for name, o := range windows {
		o.Limit = limit
		for _, step := range []time.Duration{10 * time.Millisecond, window - 10*time.Millisecond, window, window + time.Second, 10 * window, 1000 * window} {
			t.Run(fmt.Sprintf("%s, %v", name, step), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Start(t)
					l := mayfly.Must(sliding.NewLimiter(calls(srv.Client(), window), o))
					admit := func() (n int) {
						for range 3 * limit {
							if d, err := l.Allow(t.Context(), "ada", 1); err != nil {
								t.Fatal(err)
							} else if d.Allowed {
								n++
							}
						}
						return n
					}
					srv.SetTime(time.Now().Truncate(window).Add(1001 * window).Add(5 * time.Millisecond))
					if n := admit(); n != limit {
						t.Fatalf("%d were admitted", n)
					}
					for range effort.Times(2, 5) {
						stepBack(t, srv, step)
						if n := admit(); n != 0 {
							t.Errorf("a step admitted %d more", n)
						}
					}
					time.Sleep(3 * window)
					if n := admit(); n != limit {
						t.Errorf("three windows later %d were admitted", n)
					}
				})
			})
		}
	}
}
