package cacheaside_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/jitter"
	"github.com/mayflycache/mayfly/redistest"
)

// A value set with a TTL of its own gets that TTL, with the usual jitter and within the namespace's bound.
func TestSetFor(t *testing.T) {
	srv := redistest.Start(t)
	ns := namespace(t, srv.Client())
	ns.TTL, ns.MaxTTL, ns.Jitter = time.Hour, 48*time.Hour, jitter.Default
	c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
	ctx := t.Context()
	lengths := map[time.Duration]bool{}
	for key := range 50 {
		expect.OK(t, c.SetFor(ctx, key, user{Version: 7}, 24*time.Hour))
		left := srv.Client().PTTL(ctx, ns.Prefix+strconv.Itoa(key)).Val()
		if left < 21*time.Hour || left > 27*time.Hour {
			t.Errorf("%d has %v", key, left)
		}
		lengths[left.Round(time.Minute)] = true
		if e, found, err := c.Lookup(ctx, key); !found || err != nil || e.Value.Version != 7 {
			t.Errorf("%d: %+v, %v, %v", key, e, found, err)
		}
	}
	if len(lengths) < 10 {
		t.Errorf("50 values have %d lengths: they are not jittered", len(lengths))
	}
	expect.OK(t, c.SetFor(ctx, 1, user{}, time.Minute))
	if left := srv.Client().PTTL(ctx, ns.Prefix+"1").Val(); left > 2*time.Minute {
		t.Errorf("a short one has %v", left)
	}
	for says, ttl := range map[string]time.Duration{
		"the ttl must be at least 1ms, got 0s":                            0,
		"the ttl must be at least 1ms, got -1h0m0s":                       -time.Hour,
		"the ttl is 49h0m0s, but Namespace.MaxTTL allows at most 48h0m0s": 49 * time.Hour,
	} {
		if err := c.SetFor(ctx, 99, user{}, ttl); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", ttl, err)
		}
	}
	ns.MaxTTL = 0
	c = must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
	if err := c.SetFor(ctx, 99, user{}, 2*time.Hour); err == nil || !strings.Contains(err.Error(), "allows at most 1h0m0s (if zero, the limit is TTL)") {
		t.Errorf("without MaxTTL: %v", err)
	}
	expect.OK(t, c.SetFor(ctx, 99, user{}, time.Minute))
}

// A loader's TTL has the same bound as SetFor's. The value was loaded, so it is returned anyway. It is stored for the bound, and an event
// reports it.
func TestALoadersTTLHasABound(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct{ most, asked, stored time.Duration }{
		{0, 2 * time.Hour, 10 * time.Minute}, {0, 10 * time.Minute, 10 * time.Minute}, {time.Hour, 2 * time.Hour, time.Hour},
		{time.Hour, 30 * time.Minute, 30 * time.Minute},
	} {
		srv := redistest.Start(t)
		var events expect.Events
		ns := namespace(t, srv.Client())
		ns.TTL, ns.MaxTTL, ns.Observer = 10*time.Minute, c.most, &events
		cache := must[int, user](t)(cacheaside.NewEntry(ns, func(context.Context, int, *cacheaside.Entry[user]) (cacheaside.Loaded[user], error) {
			return cacheaside.Loaded[user]{Value: user{Version: 7}, TTL: c.asked}, nil
		}, cacheaside.Options{}))
		if u, err := cache.Get(ctx, 1); u.Version != 7 || err != nil {
			t.Errorf("%+v: %+v, %v", c, u, err)
		}
		if left := srv.Client().PTTL(ctx, ns.Prefix+"1").Val(); left > c.stored || left < c.stored-time.Minute {
			t.Errorf("%+v: it is stored for %v", c, left)
		}
		said := ""
		for _, e := range events.All() {
			if e.Kind == mayfly.KindWarning {
				said = e.Err.Error()
			}
		}
		if want := c.asked > c.stored; want != strings.Contains(said, "cacheaside: Loaded.TTL is longer than Namespace.MaxTTL allows, "+c.stored.String()) {
			t.Errorf("%+v: told %q", c, said)
		}
	}
}
