package cacheaside_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

func theWayOfARead(t *testing.T, rdb redis.UniversalClient) {
	var loads atomic.Int32
	ns := namespace(t, rdb)
	var events expect.Events
	ns.Observer = &events
	c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
		return user{fmt.Sprint("user ", key), int(loads.Add(1))}, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	ctx := t.Context()
	events.Forget() // the event about the client's settings

	if _, ok, err := c.Lookup(ctx, 7); ok || err != nil {
		t.Errorf("before: %v, %v", ok, err)
	}
	for range 3 {
		if u, err := c.Get(ctx, 7); u != (user{"user 7", 1}) || err != nil {
			t.Fatalf("got %+v, %v", u, err)
		}
	}
	e, ok, err := c.Lookup(ctx, 7)
	if !ok || err != nil || e.Value.Version != 1 || e.Outcome != mayfly.OutcomeHitRedis ||
		e.Fresh != e.TTL || e.TTL <= 40*time.Second || e.TTL > time.Minute || e.Age != time.Minute-e.TTL {
		t.Errorf("Lookup: %+v, %v, %v", e, ok, err)
	}
	if err := c.Delete(ctx, 7); err != nil {
		t.Fatal(err)
	}
	if u, _ := c.Get(ctx, 7); u.Version != 2 {
		t.Errorf("after Delete: %+v", u)
	}
	if err := c.Set(ctx, 7, user{"set", 99}); err != nil {
		t.Fatal(err)
	}
	if u, _ := c.Get(ctx, 7); u.Version != 99 {
		t.Errorf("after Set: %+v", u)
	}
	neighbour := "neighbour of " + ns.Prefix
	rdb.Set(ctx, neighbour, "x", time.Minute)
	if err := c.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	if !exists(t, rdb, neighbour) {
		t.Error("Clear removed what is not its own")
	}
	if u, _ := c.Get(ctx, 7); u.Version != 3 {
		t.Errorf("after Clear: %+v", u)
	}
	want := map[mayfly.Kind]map[mayfly.Outcome]int{
		mayfly.KindRead:    {mayfly.OutcomeMiss: 3, mayfly.OutcomeHitRedis: 3},
		mayfly.KindLoad:    {mayfly.OutcomeOK: 3},
		mayfly.KindFill:    {mayfly.OutcomeOK: 3},
		mayfly.KindWrite:   {mayfly.OutcomeOK: 1},
		mayfly.KindRemoval: {mayfly.OutcomeOK: 2},
	}
	for kind, outcomes := range want {
		for outcome, n := range outcomes {
			if got := events.Count(kind, outcome); got != n {
				t.Errorf("%d events %v %v, want %d", got, kind, outcome, n)
			}
		}
	}
	if len(events.All()) != 15 {
		t.Errorf("%d events, want 15 and no others", len(events.All()))
	}
	if ttl := rdb.PTTL(ctx, ns.Prefix+"7").Val(); ttl <= 0 || ttl > time.Minute {
		t.Errorf("the key's TTL is %v", ttl)
	}
}

var errNoRows = errors.New("sql: no rows in result set")

func anAbsenceIsRemembered(t *testing.T, rdb redis.UniversalClient) {
	var loads int
	c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
		loads++
		return user{}, errNoRows
	}, cacheaside.Options{MissTTL: time.Minute, NotFound: func(err error) bool { return errors.Is(err, errNoRows) }, RedisTimeout: patient}))
	for range 2 {
		if _, err := c.Get(t.Context(), 7); !errors.Is(err, mayfly.ErrNotFound) {
			t.Errorf("got error %v", err)
		}
		if e, ok, err := c.Lookup(t.Context(), 7); !errors.Is(err, mayfly.ErrNotFound) || ok || e.Value != (user{}) {
			t.Errorf("Lookup: %+v, %v, %v", e, ok, err)
		}
	}
	if loads != 1 {
		t.Errorf("%d loads", loads)
	}
	c.Set(t.Context(), 7, user{Name: "born"})
	if u, err := c.Get(t.Context(), 7); u.Name != "born" || err != nil {
		t.Errorf("after Set: %+v, %v", u, err)
	}
}

func TestAnAbsenceIsRememberedForItsOwnTime(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var loads int
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
			loads++
			return user{}, mayfly.ErrNotFound
		}, cacheaside.Options{MissTTL: 10 * time.Second}))
		for i, want := range []int{1, 1, 2} {
			if _, err := c.Get(t.Context(), 7); !errors.Is(err, mayfly.ErrNotFound) || loads != want {
				t.Errorf("after %d s: got error %v after %d loads, want %d", 6*i, err, loads, want)
			}
			synctest.Wait()
			time.Sleep(6 * time.Second)
		}
	})
}

func nothingIsRememberedByDefault(t *testing.T, rdb redis.UniversalClient) {
	fail := errors.New("the database is down")
	errs := []error{mayfly.ErrNotFound, fail, nil}
	ns := namespace(t, rdb)
	c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
		err := errs[0]
		errs = errs[1:]
		return user{"there", 1}, err
	}, cacheaside.Options{RedisTimeout: patient}))
	if _, err := c.Get(t.Context(), 7); !errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("got error %v", err)
	}
	if _, err := c.Get(t.Context(), 7); !errors.Is(err, fail) || errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("got error %v", err)
	}
	if stored(t, rdb, ns.Prefix+"7") {
		t.Error("a failed load left something")
	}
	if u, err := c.Get(t.Context(), 7); u.Name != "there" || err != nil {
		t.Errorf("got %+v, %v", u, err)
	}
}

func aLoaderThatDecidesForItself(t *testing.T, rdb redis.UniversalClient) {
	ns := namespace(t, rdb)
	var answer cacheaside.Loaded[user]
	var shown atomic.Pointer[cacheaside.Entry[user]]
	c := must[int, user](t)(cacheaside.NewEntry(ns, func(_ context.Context, _ int, previous *cacheaside.Entry[user]) (cacheaside.Loaded[user], error) {
		shown.Store(previous)
		return answer, nil
	}, cacheaside.Options{StaleWhile: time.Minute, RedisTimeout: patient}))
	ctx := t.Context()

	answer = cacheaside.Loaded[user]{Value: user{Version: 1}, TTL: 30 * time.Second}
	c.Get(ctx, 7)
	if e, ok, _ := c.Lookup(ctx, 7); !ok || e.Fresh > 30*time.Second || e.Fresh < 10*time.Second || e.TTL-e.Fresh != time.Minute || shown.Load() != nil {
		t.Errorf("its own TTL: %+v, shown %v", e, shown.Load())
	}
	rdb.PExpire(ctx, ns.Prefix+"7", 50*time.Second) // 10 s past its 30 s
	answer = cacheaside.Loaded[user]{NotModified: true}
	if u, _ := c.Get(ctx, 7); u.Version != 1 {
		t.Errorf("stale: %+v", u)
	}
	expect.Eventually(t, "the value is stored anew", func() bool { e, _, _ := c.Lookup(ctx, 7); return e.Fresh > 40*time.Second })
	if p := shown.Load(); p == nil || p.Value.Version != 1 || p.Age < 40*time.Second || p.Outcome != mayfly.OutcomeStale {
		t.Errorf("not modified: shown %+v", p)
	}
	if e, _, _ := c.Lookup(ctx, 7); e.Value.Version != 1 || e.Fresh > time.Minute {
		t.Errorf("not modified: stored %+v", e)
	}
	answer = cacheaside.Loaded[user]{Value: user{Version: 3}, NoStore: true}
	if u, err := c.Get(ctx, 8); u.Version != 3 || err != nil || exists(t, rdb, ns.Prefix+"8") {
		t.Errorf("do not keep: %+v, %v", u, err)
	}
	for _, bad := range []cacheaside.Loaded[user]{{NotModified: true}, {TTL: -time.Second}, {TTL: time.Microsecond}, {TTL: 1 << 62}} {
		answer = bad
		if _, err := c.Get(ctx, 9); err == nil || stored(t, rdb, ns.Prefix+"9") {
			t.Errorf("%+v: got error %v", bad, err)
		}
	}
}

func fetch(t *testing.T, rdb redis.UniversalClient) {
	ns := namespace(t, rdb)
	c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
		return user{}, errors.New("not this one")
	}, cacheaside.Options{RedisTimeout: patient}))
	loads := 0
	for range 2 {
		u, err := c.Fetch(t.Context(), 7, func(context.Context) (user, error) { loads++; return user{"fetched", 1}, nil })
		if u.Name != "fetched" || err != nil || loads != 1 {
			t.Errorf("got %+v, %v after %d loads", u, err, loads)
		}
	}
	if _, err := c.Fetch(t.Context(), 8, nil); err == nil || exists(t, rdb, ns.Prefix+"8") {
		t.Errorf("Fetch without a loader: %v", err)
	}
}
