package mayfly_test

import (
	"context"
	"encoding/json"
	"expvar"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
)

func TestCounters(t *testing.T) {
	var c mayfly.Counters
	var v expvar.Var = &c
	if v.String() != "[]" {
		t.Errorf("at first: %s", v)
	}
	observer := mayfly.Tee(&c, nil, mayfly.ObserverFunc(func(context.Context, mayfly.Event) {}))
	observer.(interface{ ObserveLocal(string, func() uint64) }).ObserveLocal("users", func() uint64 { return 7 })
	c.ObserveLocal("users", func() uint64 { return 5 })
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			for range 100 {
				observer.Observe(t.Context(), mayfly.Event{Kind: mayfly.KindLoad, Outcome: mayfly.OutcomeOK, Namespace: "users", Took: time.Millisecond, N: 2})
				observer.Observe(t.Context(), mayfly.Event{Kind: mayfly.KindLag, Outcome: mayfly.OutcomeOK})
			}
		})
	}
	wg.Wait()
	want := []mayfly.Count{
		{Kind: "lag", Outcome: mayfly.OutcomeOK, Events: 1000},
		{Namespace: "users", Kind: "load", Outcome: mayfly.OutcomeOK, Events: 1000, N: 2000, Took: time.Second},
		{Namespace: "users", Kind: "read", Outcome: mayfly.OutcomeHitLocal, Events: 12},
	}
	if got := c.Snapshot(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	var read []mayfly.Count
	if err := json.Unmarshal([]byte(v.String()), &read); err != nil || !slices.Equal(read, want) {
		t.Errorf("%v: %s", err, v)
	}
	e := mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeHitRedis, Namespace: "users"}
	observer.Observe(t.Context(), e)
	if n := testing.AllocsPerRun(100, func() { c.Observe(t.Context(), e) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
