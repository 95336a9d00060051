package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/lease"
)

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := mini(t)
		o := lease.Options{Redis: rdb, Timeout: time.Second}
		g := lease.New(o)
		loading := func(f lease.Found) bool { return f.State != lease.Loading }

		// A load of 300 ms: found within one poll of its end.
		c := claim(t, g, "k", lease.Found{})
		time.AfterFunc(300*time.Millisecond, func() { fill(t, o, c, "v") })
		begun := time.Now()
		f, err := g.Await(t.Context(), "k", loading)
		if took := time.Since(begun); err != nil || string(f.Body) != "v" || took > 450*time.Millisecond {
			t.Errorf("got %+v, %v after %v", f, err, took)
		}

		// A holder that died: the key is free when its lease ends.
		claim(t, g, "dead", lease.Found{})
		begun = time.Now()
		f, err = g.Await(t.Context(), "dead", loading)
		if took := time.Since(begun); err != nil || f.State != lease.Absent || took > lease.TTL+150*time.Millisecond {
			t.Errorf("got %+v, %v after %v", f, err, took)
		}

		// A waiter leaves on its own.
		claim(t, g, "slow", lease.Found{})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, err := g.Await(ctx, "slow", loading); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v", err)
		}
	})
}

func TestAPushWakesAWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := mini(t)
		changed, stopped := make(chan struct{}, 1), false
		o := lease.Options{Redis: rdb, Timeout: time.Second, Pushes: func(key string) (<-chan struct{}, func()) {
			return changed, func() { stopped = true }
		}}
		g := lease.New(o)
		c := claim(t, g, "k", lease.Found{})
		time.AfterFunc(100*time.Millisecond, func() { fill(t, o, c, "v"); changed <- struct{}{} })
		begun := time.Now()
		f, err := g.Await(t.Context(), "k", func(f lease.Found) bool { return f.State != lease.Loading })
		if took := time.Since(begun); err != nil || string(f.Body) != "v" || took != 100*time.Millisecond || !stopped {
			t.Errorf("got %+v, %v after %v, stopped %v; want it at the push", f, err, took, stopped)
		}
	})
}

// Waits for several loads end each in its own way and at its own time, as a wait for one load does.
func TestWaitsForManyLoads(t *testing.T) {
	for _, plain := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			o := lease.Options{Redis: mini(t), Timeout: time.Second, Plain: plain}
			g := lease.New(o)
			claims, waits := map[string]*lease.Claim{}, []lease.Waiting(nil)
			names := []string{"stored", "stored too", "deleted", "failed", "given up", "impatient", "dead"}
			for _, key := range names {
				claims[key] = claim(t, g, key, lease.Found{})
				a := g.Ask(t.Context(), []lease.Want{{Key: key}})[0]
				wait, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("too long"))
				if key == "impatient" {
					wait, cancel = context.WithTimeoutCause(t.Context(), 456*time.Millisecond, errors.New("too long"))
				}
				defer cancel()
				waits = append(waits, lease.Waiting{Want: lease.Want{Key: key, Seen: a.Found}, Wait: wait})
			}
			time.AfterFunc(100*time.Millisecond, func() {
				claims["impatient"].Keep(t.Context())
				for _, key := range names[:2] {
					fill(t, o, claims[key], "v")
				}
				g.Delete(t.Context(), []string{"deleted"})
				g.End(t.Context(), claims["failed"].Failed("down", 0))
				claims["given up"].GiveUp(t.Context(), 0)
			})
			begun, rounds := time.Now(), 0
			got, at := map[string]lease.Acquired{}, map[string]time.Duration{}
			g.OutwaitMany(t.Context(), waits, func(of []int, as []lease.Acquired) {
				rounds++
				for n, i := range of {
					got[names[i]], at[names[i]] = as[n], time.Since(begun)
				}
			})
			for key, want := range map[string]struct {
				standing lease.Standing
				state    lease.State
				voided   bool
				after    time.Duration
			}{
				"stored": {lease.Changed, lease.Present, true, 200 * time.Millisecond}, "stored too": {lease.Changed, lease.Present, true, 200 * time.Millisecond},
				"deleted": {lease.Changed, lease.Absent, true, 200 * time.Millisecond}, "failed": {lease.Ruined, lease.Failed, false, 200 * time.Millisecond},
				"given up": {lease.Changed, lease.Failed, false, 200 * time.Millisecond}, "impatient": {lease.Late, lease.Loading, false, 460 * time.Millisecond},
				"dead": {lease.Changed, lease.Absent, false, 1200 * time.Millisecond},
			} {
				a := got[key]
				if plain && want.state != lease.Present {
					want.state = lease.Absent
				}
				if a.Standing != want.standing || a.State != want.state || a.Voided != want.voided || at[key] > want.after || a.Waited != at[key] {
					t.Errorf("plain %v, %s: %+v after %v, want %+v", plain, key, a, at[key], want)
				}
			}
			if rounds != 3 {
				t.Errorf("plain %v: %d rounds", plain, rounds)
			}
		})
	}
}

// A push about one of many keys is worth a look at all of them.
func TestAPushWakesAWaiterForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed, watched := make(chan struct{}, 1), 0
		o := lease.Options{Redis: mini(t), Timeout: time.Second, Pushes: func(key string) (<-chan struct{}, func()) {
			watched++
			return changed, func() { watched-- }
		}}
		g := lease.New(o)
		var waits []lease.Waiting
		var claims []*lease.Claim
		for _, key := range []string{"a", "b", "c"} {
			claims = append(claims, claim(t, g, key, lease.Found{}))
			waits = append(waits, lease.Waiting{Want: lease.Want{Key: key, Seen: look(t, g, key)}, Wait: t.Context()})
		}
		time.AfterFunc(777*time.Millisecond, func() {
			for _, c := range claims {
				fill(t, o, c, "v")
			}
			changed <- struct{}{}
		})
		begun, n := time.Now(), 0
		g.OutwaitMany(t.Context(), waits, func(of []int, _ []lease.Acquired) { n += len(of) })
		if took := time.Since(begun); n != 3 || took != 777*time.Millisecond || watched != 0 {
			t.Errorf("%d ended after %v, %d still watched", n, took, watched)
		}
	})
}
