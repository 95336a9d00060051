package cacheaside_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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

// A batch loader that ignores its context and answers after all callers have left must not touch their results, as the race detector would
// show.
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

// A batch loader that respects its context returns an error of its own, and callers learn why the load ended.
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
			t.Errorf("%d events report a load that timed out", n)
		}
	})
}

// LoadSoftTimeout bounds a call's wait, whatever its number of keys.
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

// A call whose context ends before Redis is asked loads nothing.
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

// Stale values that must be loaded before they are served are loaded by one call of the batch loader, like missing ones.
func TestABatchOfKeysToRenew(t *testing.T) {
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

// A batch loader decides about each value's life as a single loader does: with Get, with GetMany, and when Redis cannot be asked.
func TestABatchLoaderThatDecidesForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ctx, rdb := t.Context(), srv.Client()
		ns := namespace(t, rdb)
		ns.MaxTTL = time.Hour
		var shown map[int]cacheaside.Entry[user]
		answers := map[int]cacheaside.Loaded[user]{}
		c := must[int, user](t)(cacheaside.NewBatchEntry(ns, func(_ context.Context, keys []int, previous map[int]cacheaside.Entry[user]) (map[int]cacheaside.Loaded[user], error) {
			shown = previous
			return answers, nil
		}, cacheaside.Options{Early: earlyrefresh.Never, StaleIfError: time.Hour}))
		answers[1] = cacheaside.Loaded[user]{Value: user{Version: 1}, TTL: 30 * time.Second}
		answers[2] = cacheaside.Loaded[user]{Value: user{Version: 2}, TTL: 30 * time.Minute}
		answers[3] = cacheaside.Loaded[user]{Value: user{Version: 3}, NoStore: true}
		answers[4] = cacheaside.Loaded[user]{NotModified: true}
		answers[5] = cacheaside.Loaded[user]{TTL: -time.Second}
		got, err := c.GetMany(ctx, []int{1, 2, 3, 4, 5, 6})
		var failed *cacheaside.ManyError[int]
		if !errors.As(err, &failed) || len(failed.Errs) != 2 || failed.Errs[4] == nil || failed.Errs[5] == nil || !strings.Contains(failed.Errs[5].Error(), "Loaded.TTL must be") {
			t.Errorf("what is wrong: %v", err)
		}
		if len(got) != 3 || got[1].Version != 1 || got[2].Version != 2 || got[3].Version != 3 || len(shown) != 0 {
			t.Errorf("%v, and it was shown %v", got, shown)
		}
		for key, want := range map[int]time.Duration{1: 30 * time.Second, 2: 30 * time.Minute, 3: 0, 6: 0} {
			if e, _, err := c.Lookup(ctx, key); e.Fresh.Round(time.Second) != want || err != nil {
				t.Errorf("%d is fresh for %v, %v, want %v", key, e.Fresh, err, want)
			}
		}
		time.Sleep(time.Minute) // the first is stale
		answers[1] = cacheaside.Loaded[user]{NotModified: true}
		for what, ask := range map[string]func() (user, error){
			"GetMany": func() (user, error) { got, err := c.GetMany(ctx, []int{1, 2}); return got[1], err },
			"Get":     func() (user, error) { return c.Get(ctx, 1) },
		} {
			if u, err := ask(); u.Version != 1 || err != nil || len(shown) != 1 || shown[1].Value.Version != 1 || shown[1].Age < time.Minute {
				t.Errorf("%s of what is not modified: %v, %v, and it was shown %v", what, u, err, shown)
			}
			if e, _, _ := c.Lookup(ctx, 1); e.Fresh < 50*time.Second {
				t.Errorf("%s: it is fresh for %v", what, e.Fresh)
			}
			time.Sleep(90 * time.Second)
		}
		srv.Hang()
		answers[1] = cacheaside.Loaded[user]{Value: user{Version: 9}}
		if got, err := c.GetMany(ctx, []int{1, 3}); got[1].Version != 9 || got[3].Version != 3 || err != nil {
			t.Errorf("without Redis: %v, %v", got, err)
		}
		srv.Thaw()
		if _, err := cacheaside.NewBatchEntry(ns, nil, cacheaside.Options{}); err == nil || !strings.Contains(err.Error(), "the loader is nil") {
			t.Errorf("without a loader: %v", err)
		}
	})
}

// A loader may change its list of keys, such as sort them for the database: each value still belongs to its own key.
func TestABatchLoaderThatSortsItsKeys(t *testing.T) {
	c := must[int, user](t)(cacheaside.NewBatch(namespace(t, redistest.Start(t).Client()), func(_ context.Context, keys []int) (map[int]user, error) {
		slices.Sort(keys)
		found := make(map[int]user)
		for _, key := range keys {
			found[key] = user{Version: key}
		}
		return found, nil
	}, cacheaside.Options{}))
	for range 2 { // loaded, and stored
		got, err := c.GetMany(t.Context(), []int{3, 1, 2})
		if err != nil || got[1].Version != 1 || got[2].Version != 2 || got[3].Version != 3 {
			t.Errorf("%v, %v", got, err)
		}
	}
}
