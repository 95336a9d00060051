package mayfly_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
)

func TestLocalOptionsNameWhatIsWrong(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	for _, c := range []struct {
		change func(o *mayfly.LocalOptions)
		want   string
	}{
		{func(o *mayfly.LocalOptions) { o.Redis = nil }, "LocalOptions.Redis is nil"},
		{func(o *mayfly.LocalOptions) { o.Redis = (*redis.Client)(nil) }, "LocalOptions.Redis is nil"},
		{func(o *mayfly.LocalOptions) { o.Redis = (*redis.ClusterClient)(nil) }, "LocalOptions.Redis is nil"},
		{func(o *mayfly.LocalOptions) { o.Redis = ring }, "LocalOptions.Redis is a redis.Ring"},
		{func(o *mayfly.LocalOptions) { o.Redis = wrapped{rdb} }, "must be a *redis.Client or a *redis.ClusterClient, got mayfly_test.wrapped"},
		{func(o *mayfly.LocalOptions) { o.Prefixes = nil }, "LocalOptions.Prefixes is empty"},
		{func(o *mayfly.LocalOptions) { o.Prefixes = []string{"a:", ""} }, "LocalOptions.Prefixes[1] is empty"},
		{func(o *mayfly.LocalOptions) { o.Prefixes = []string{"may"} }, `LocalOptions.Prefixes[0] "may" leads into "mayfly:"`},
		{func(o *mayfly.LocalOptions) { o.Prefixes = []string{"a:b:", "a:"} }, `LocalOptions.Prefixes[1] "a:" begins Prefixes[0] "a:b:"`},
		{func(o *mayfly.LocalOptions) { o.Prefixes = []string{"a:", "a:"} }, `LocalOptions.Prefixes[0] "a:" begins Prefixes[1] "a:"`},
		{func(o *mayfly.LocalOptions) { o.MaxBytes = -1 }, "LocalOptions.MaxBytes must not be negative, got -1"},
		{func(o *mayfly.LocalOptions) { o.MaxEntries = -1 }, "LocalOptions.MaxEntries must not be negative, got -1"},
		{func(o *mayfly.LocalOptions) { o.MaxBytes = 0 }, "LocalOptions.MaxBytes and MaxEntries are both zero"},
		{func(o *mayfly.LocalOptions) { o.MaxTTL = -time.Second }, "LocalOptions.MaxTTL must be at least 1ms, got -1s"},
		{func(o *mayfly.LocalOptions) { o.Outage = -time.Second }, "LocalOptions.Outage must be at least 1ms, got -1s"},
		{func(o *mayfly.LocalOptions) { o.Silence = time.Millisecond }, "LocalOptions.Silence must be at least 100ms, got 1ms"},
		{func(o *mayfly.LocalOptions) { o.Silence = 2 * time.Hour }, "LocalOptions.Silence must be at most an hour, got 2h0m0s"},
		{func(o *mayfly.LocalOptions) { o.ShortTTL = 2 * time.Hour }, "LocalOptions.ShortTTL must be at most an hour, got 2h0m0s"},
	} {
		o := mayfly.LocalOptions{Redis: rdb, Prefixes: []string{"cache:"}, MaxBytes: 1 << 20}
		c.change(&o)
		l, err := mayfly.OpenLocal(t.Context(), o)
		if err == nil || l != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want %q", err, c.want)
		}
	}
}

type wrapped struct{ redis.UniversalClient }

func TestNamespaceAndItsLocal(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client()
	l, err := mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{"cache:", "page:"}, MaxEntries: 10})
	if err != nil {
		t.Fatal(err)
	}
	ns := mayfly.Namespace[int, string]{Name: "n", Redis: rdb, Prefix: "cache:user:", TTL: time.Minute, Local: l}
	check := func(want string) {
		t.Helper()
		switch err := ns.Validate(); {
		case want == "" && err != nil:
			t.Error(err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("got error %v, want %q", err, want)
		}
	}
	check("")
	ns.Prefix = "page:"
	check("")
	ns.Prefix = "cach"
	check(`Namespace.Prefix "cach" is outside the prefixes of Namespace.Local, ["cache:" "page:"]`)
	ns.Prefix = "cache:"
	other := redis.NewClient(srv.Options())
	defer other.Close()
	ns.Redis = other
	check("Namespace.Redis is not the client that Namespace.Local was opened with")
	ns.Redis, ns.Local = rdb, &mayfly.Local{}
	check("Namespace.Local was not opened")
	ns.Local = l
	for range 2 {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	check("Namespace.Local: closed")
}

func TestEachChangeOfTheRungIsOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var mu sync.Mutex
		var events []mayfly.Event
		l, err := mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{
			Redis: srv.Client(), Prefixes: []string{"cache:"}, MaxEntries: 10,
			Observer: mayfly.ObserverFunc(func(_ context.Context, e mayfly.Event) {
				mu.Lock()
				defer mu.Unlock()
				events = append(events, e)
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(context.Background())
		time.Sleep(10 * time.Second)
		srv.Hang()
		time.Sleep(10 * time.Second)
		srv.FailNext("client tracking", "NOPERM not any more")
		srv.Thaw()
		time.Sleep(10 * time.Second)
		if s := l.Stats(); s.Rung != "pubsub" {
			t.Errorf("the rung is %v", s.Rung)
		}
		mu.Lock()
		defer mu.Unlock()
		var outcomes []string
		var whys []error
		lags := 0
		for _, e := range events {
			if e.Kind == mayfly.KindLag { // four times in each Silence, while Redis answers
				lags++
				continue
			}
			if e.Kind != mayfly.KindCoherence {
				t.Errorf("an event of kind %v", e.Kind)
			}
			outcomes = append(outcomes, string(e.Outcome))
			whys = append(whys, e.Err)
		}
		if lags < 20 || lags > 60 {
			t.Errorf("the lag was told %d times", lags)
		}
		if got := strings.Join(outcomes, " "); got != "tracking off pubsub" {
			t.Errorf("the rungs were %s", got)
		}
		if err := errors.Join(whys...); err == nil || !strings.Contains(err.Error(), "nothing is heard") || !strings.Contains(err.Error(), "NOPERM not any more") {
			t.Errorf("the reasons were %v", err)
		}
	})
}
