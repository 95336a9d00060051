package sliding_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// Another program, or an older version of this one, may give a key more time, so that Redis keeps a value beyond its end. That value has ended
// nevertheless, for each way to reach it.
func TestNothingIsServedPastItsMaxAge(t *testing.T) {
	for name, use := range map[string]func(t *testing.T, s *sliding.Store[string, cart]) error{
		"Get": func(t *testing.T, s *sliding.Store[string, cart]) error {
			_, err := s.Get(t.Context(), "ada")
			return err
		},
		"Touch":  func(t *testing.T, s *sliding.Store[string, cart]) error { return s.Touch(t.Context(), "ada") },
		"Rotate": func(t *testing.T, s *sliding.Store[string, cart]) error { return s.Rotate(t.Context(), "ada", "bob") },
		"Update": func(t *testing.T, s *sliding.Store[string, cart]) error {
			_, err := s.Update(t.Context(), "ada", func(c cart) (cart, error) { return c, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rdb := redistest.Start(t).Client()
				s := mayfly.Must(sliding.New(namespace(rdb), sliding.Options{RedisTimeout: patient, MaxAge: time.Hour}))
				if err := s.Create(t.Context(), "ada", cart{Count: 1}); err != nil {
					t.Fatal(err)
				}
				rdb.PExpire(t.Context(), "cart:ada", 5*time.Hour)
				time.Sleep(time.Hour)
				want(t, use(t, s), mayfly.ErrNotFound)
				if err := s.Create(t.Context(), "ada", cart{Count: 2}); err != nil {
					t.Errorf("nothing is there, and a new one: %v", err)
				}
				if c, err := s.Get(t.Context(), "ada"); c.Count != 2 || err != nil {
					t.Errorf("the new one is %+v, %v", c, err)
				}
			})
		})
	}
}

// A Set of a value that has ended begins a new one.
func TestSetAfterMaxAgeBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.Start(t).Client()
		s := mayfly.Must(sliding.New(namespace(rdb), sliding.Options{RedisTimeout: patient, MaxAge: time.Hour}))
		s.Create(t.Context(), "ada", cart{Count: 1})
		rdb.PExpire(t.Context(), "cart:ada", 5*time.Hour)
		time.Sleep(2 * time.Hour)
		if err := s.Set(t.Context(), "ada", cart{Count: 2}); err != nil {
			t.Fatal(err)
		}
		if c, err := s.Get(t.Context(), "ada"); c.Count != 2 || err != nil {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// A plain value of another program has no room for an end: a store that needs one refuses it, and leaves it as it is.
func TestRotateLeavesAloneWhatHasNoRoomForAnEnd(t *testing.T) {
	rdb := redistest.Start(t).Client()
	s := mayfly.Must(sliding.New(namespace(rdb), sliding.Options{RedisTimeout: patient, MaxAge: time.Hour}))
	const theirs = `{"Items":["a book","another book","a third"],"Count":3}`
	rdb.Set(t.Context(), "cart:ada", theirs, time.Minute)
	if err := s.Rotate(t.Context(), "ada", "bob"); err == nil {
		t.Error("it is said to be rotated")
	}
	if text := rdb.Get(t.Context(), "cart:ada").Val(); text != theirs || rdb.Exists(t.Context(), "cart:bob").Val() != 0 {
		t.Errorf("it is %q now, and %q", text, rdb.Get(t.Context(), "cart:bob").Val())
	}
}

// Redis's clock may go back, as at a failover to a server whose clock is behind: calls admitted before still count.
func TestAClockThatGoesBackAdmitsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ns := mayfly.Namespace[string, int64]{Name: "calls", Redis: srv.Client(), Prefix: "calls:", TTL: time.Minute}
		l := mayfly.Must(sliding.NewLimiter(ns, sliding.LimiterOptions{RedisTimeout: patient, Limit: 5, Sliding: true}))
		window := time.Now().Truncate(time.Minute).Add(time.Minute)
		srv.SetTime(window.Add(10 * time.Millisecond))
		for range 5 {
			if d, err := l.Allow(t.Context(), "ada", 1); !d.Allowed || err != nil {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		srv.SetTime(window.Add(-10 * time.Millisecond))
		if d, err := l.Allow(t.Context(), "ada", 1); d.Allowed || d.RetryAfter <= 0 || err != nil {
			t.Errorf("the sixth call within 20 ms: %+v, %v", d, err)
		}
	})
}
