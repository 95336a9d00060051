package cacheaside_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// A batch loader that does not heed its context, and answers when nobody waits for it any more, has answered nobody. The
// race detector looks on.
func TestABatchThatIsTooLateIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.Start(t).Client()
		c := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), func(ctx context.Context, keys []int) (map[int]user, error) {
			<-ctx.Done()
			return map[int]user{1: {Version: 1}}, nil
		}, cacheaside.Options{LoadTimeout: time.Second}))
		got, err := c.GetMany(t.Context(), []int{1, 2})
		if !errors.Is(err, mayfly.ErrLoadTimeout) && len(got) != 1 { // the two are ready at once
			t.Errorf("%v, %v", got, err)
		}
	})
}

// A batch loader that heeds its context says so by an error of its own, and callers are told why it ended.
func TestABatchThatGivesUpIsALoadTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var events expect.Events
		ns := namespace(t, redistest.Start(t).Client())
		ns.Observer = &events
		c := must[int, user](t)(cacheaside.NewBatch(ns, func(ctx context.Context, keys []int) (map[int]user, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, cacheaside.Options{LoadTimeout: time.Second}))
		if _, err := c.GetMany(t.Context(), []int{1, 2}); !errors.Is(err, mayfly.ErrLoadTimeout) {
			t.Error(err)
		}
		if n := events.Count(mayfly.KindLoad, mayfly.OutcomeTimedOut); n != 1 {
			t.Errorf("%d loads are told to have timed out", n)
		}
	})
}

// LoadSoftTimeout is what a call waits, about however many keys it is.
func TestSoftIsOfTheWholeCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.Start(t).Client()
		hang := false
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(ctx context.Context, key int) (user, error) {
			if hang {
				<-ctx.Done()
			}
			return user{Version: key}, ctx.Err()
		}, cacheaside.Options{
			Early: earlyrefresh.Never, StaleIfError: time.Hour, LoadSoftTimeout: 50 * time.Millisecond,
		}))
		keys := make([]int, 20)
		for i := range keys {
			keys[i] = i
		}
		if _, err := c.GetMany(t.Context(), keys); err != nil {
			t.Fatal(err)
		}
		hang = true
		time.Sleep(2 * time.Minute)
		begun := time.Now()
		got, err := c.GetMany(t.Context(), keys)
		if took := time.Since(begun); len(got) != len(keys) || err != nil || took > 200*time.Millisecond {
			t.Errorf("%d values, %v, after %v", len(got), err, took)
		}
	})
}

// Who is gone before Redis was asked wants nothing loaded.
func TestACallerWhoLeftLoadsNothing(t *testing.T) {
	rdb := redistest.Start(t).Client()
	var events expect.Events
	ns := namespace(t, rdb)
	ns.Observer = &events
	c := must[int, user](t)(cacheaside.NewBatch(ns, func(context.Context, []int) (map[int]user, error) {
		t.Error("the loader was asked")
		return nil, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := c.GetMany(gone, []int{1, 2}); len(got) != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", got, err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if n := events.Count(mayfly.KindBackend, mayfly.OutcomeFailed); n != 0 {
		t.Errorf("Redis is blamed %d times", n)
	}
}

// What is stale and to be loaded before it is served is loaded by one call of the batch loader, as what is missing is.
func TestABatchOfWhatIsToBeRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.Start(t).Client()
		var calls, version atomic.Int32
		var down atomic.Bool
		c := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), func(_ context.Context, keys []int) (map[int]user, error) {
			calls.Add(1)
			if down.Load() {
				return nil, errors.New("down")
			}
			found := map[int]user{}
			for _, key := range keys {
				found[key] = user{Version: int(version.Load())}
			}
			return found, nil
		}, cacheaside.Options{Early: earlyrefresh.Never, StaleIfError: time.Hour, RenewThrottle: time.Minute}))
		keys := make([]int, 50)
		for i := range keys {
			keys[i] = i
		}
		ask := func(what string, wantVersion int, wantCalls int32) {
			t.Helper()
			calls.Store(0)
			got, err := c.GetMany(t.Context(), keys)
			if len(got) != len(keys) || got[49].Version != wantVersion || err != nil || calls.Load() != wantCalls {
				t.Errorf("%s: %d values, %+v, %v, by %d calls, want version %d by %d", what, len(got), got[49], err, calls.Load(), wantVersion, wantCalls)
			}
		}
		ask("missing", 0, 1)
		time.Sleep(2 * time.Minute)
		version.Store(1)
		ask("stale", 1, 1)
		ask("renewed", 1, 0)
		time.Sleep(2 * time.Minute)
		down.Store(true)
		ask("stale, the origin is down", 1, 1)
		ask("stale, it was down just now", 1, 0)
		down.Store(false)
		version.Store(2)
		time.Sleep(2 * time.Minute)
		ask("stale, the origin is back", 2, 1)
	})
}
