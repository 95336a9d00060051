package cacheaside_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/redistest"
)

// holds claims a key, as a process does that begins to load it.
func holds(t *testing.T, rdb *redis.Client, key string) *lease.Claim {
	a := lease.New(lease.Options{Redis: rdb, Timeout: time.Second}).Claim(t.Context(), key, lease.Found{})
	if a.Claim == nil || a.Err != nil {
		t.Fatalf("no claim: %+v", a)
	}
	return a.Claim
}

// keeps keeps a claim for some time.
func keeps(t *testing.T, c *lease.Claim, d time.Duration) {
	for end := time.Now().Add(d); time.Until(end) > 0; c.Keep(t.Context()) {
		<-time.After(min(time.Until(end), lease.Beat))
	}
}

// A process that loads a key for which others wait is killed, or gives up. One of them loads the key, the others wait for that load, and nobody
// gets an error, however long it takes in all.
func TestAHolderThatDiesLeadsToOneLoadAtATime(t *testing.T) {
	dies := func(*lease.Claim) {}
	givesUp := func(c *lease.Claim) { c.GiveUp(context.Background(), 0) }
	for _, c := range []struct {
		name           string
		held           time.Duration
		ends           func(*lease.Claim)
		timeout, takes time.Duration
	}{
		{"slow loads", 2 * time.Second, dies, 3 * time.Second, 2200 * time.Millisecond},
		{"at once", time.Millisecond, dies, 3 * time.Second, 2200 * time.Millisecond},
		{"at the end of its time", 2900 * time.Millisecond, dies, 3 * time.Second, 2200 * time.Millisecond},
		{"a load may take less than a lease lives", 300 * time.Millisecond, dies, 500 * time.Millisecond, 300 * time.Millisecond},
		{"much less", time.Millisecond, dies, 100 * time.Millisecond, 50 * time.Millisecond},
		{"gives up", 1900 * time.Millisecond, givesUp, 2 * time.Second, 1800 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := slowOrigin{processes: 6, lasts: 6 * time.Second, ttl: time.Minute, held: c.held, ends: c.ends, load: patiently(c.takes),
				options: cacheaside.Options{LoadTimeout: c.timeout}}
			s.play(t)
			if s.loads != 1 || s.most != 1 || len(s.errs) > 0 {
				t.Errorf("%d loads, %d at once, errors %v; want one load and no error", s.loads, s.most, s.errs)
			}
			if worst := c.held + lease.TTL + c.takes + 300*time.Millisecond; s.took[len(s.took)-1] > worst {
				t.Errorf("a Get took %v, want %v at most", s.took[len(s.took)-1], worst)
			}
		})
	}
}

// A process that allows its loads less time than another one, which is alive and loads, waits for about its own LoadTimeout: until it has
// seen that the other still lives.
func TestALiveHolderIsWaitedForAboutLoadTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, time.Second, 3 * time.Second} {
		for _, plain := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				rdb := redistest.Start(t).Client()
				ns := namespace(t, rdb)
				ns.Plain = plain
				key := ns.Prefix + "1"
				a := lease.New(lease.Options{Redis: rdb, Timeout: time.Second, Plain: plain}).Claim(t.Context(), key, lease.Found{})
				if a.Claim == nil {
					t.Fatal(a.Err)
				}
				var all sync.WaitGroup
				all.Go(func() { keeps(t, a.Claim, 10*time.Second) })
				c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
					t.Error("a load beside another one")
					return user{}, nil
				}, cacheaside.Options{LoadTimeout: timeout}))
				for name, get := range map[string]func() error{
					"Get": func() error { _, err := c.Get(t.Context(), 1); return err },
					"GetMany": func() error {
						_, err := c.GetMany(t.Context(), []int{1})
						return err
					},
				} {
					begun := time.Now()
					err := get()
					if took := time.Since(begun); !strings.Contains(fmt.Sprint(err), mayfly.ErrLoadTimeout.Error()) || took < timeout || took > timeout+time.Second/2 {
						t.Errorf("%s, LoadTimeout %v, plain %v: %v after %v", name, timeout, plain, err, took)
					}
				}
				all.Wait()
			})
		}
	}
}

// A key that is deleted all the time holds a caller for at most LoadTimeout and one load: a caller that has waited so long does not wait for
// another load after the next Delete.
func TestAKeyThatIsDeletedAllTheTime(t *testing.T) {
	s := slowOrigin{processes: 6, lasts: 8 * time.Second, ttl: time.Minute, load: patiently(time.Second),
		options: cacheaside.Options{LoadTimeout: 2 * time.Second},
		redis: func(srv *redistest.Server) {
			for range 32 {
				<-time.After(250 * time.Millisecond)
				srv.Client().Del(context.Background(), namespace(t, nil).Prefix+"1")
			}
		}}
	s.play(t)
	if worst := s.took[len(s.took)-1]; worst > 4500*time.Millisecond || len(s.errs) > 0 { // a late caller waits for the end of a load first
		t.Errorf("a Get took %v, errors %v", worst, s.errs)
	}
}
