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
