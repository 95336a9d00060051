package cacheaside_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

func load(context.Context, int) (user, error) { return user{}, nil }

func TestWrongOptionsAreNamed(t *testing.T) {
	rdb := mini(t)
	for _, c := range []struct {
		want  string
		o     cacheaside.Options
		plain bool
	}{
		{want: "Options.MissTTL must be at least 1ms, got -1s", o: cacheaside.Options{MissTTL: -time.Second}},
		{want: "Options.Hold must be at least 1ms, got 1ns", o: cacheaside.Options{Hold: 1}},
		{want: "Options.StaleWhile must be at least 1ms", o: cacheaside.Options{StaleWhile: -1}},
		{want: "Options.StaleIfError must be at most", o: cacheaside.Options{StaleIfError: math.MaxInt64}},
		{want: "Options.LoadTimeout must be at least 1ms", o: cacheaside.Options{LoadTimeout: -1}},
		{want: "Options.LoadSoftTimeout must be at least 1ms", o: cacheaside.Options{LoadSoftTimeout: -1}},
		{want: "Options.RenewLimit must not be negative, got -1", o: cacheaside.Options{RenewLimit: -1}},
		{want: "Options.RedisTimeout must be at least 1ms", o: cacheaside.Options{RedisTimeout: -1}},
		{want: "Options.LoadLimit must be at most 1000000, got 1000001: a negative one is no limit", o: cacheaside.Options{LoadLimit: 1_000_001}},
		{want: "Options.LoadLimit is 3, and Origin has a limit of its own", o: cacheaside.Options{LoadLimit: 3, Origin: mayfly.Must(mayfly.NewOrigin(mayfly.OriginOptions{}))}},
		{want: "Options.Origin was not made: use mayfly.NewOrigin", o: cacheaside.Options{Origin: &mayfly.Origin{}}},
		{want: "Options.Unremoved must not be negative, got -1", o: cacheaside.Options{Unremoved: -1}},
		{want: "Options.Compress must not be negative, got -1", o: cacheaside.Options{Compress: -1}},
		{want: "Options.Early: earlyrefresh.XFetch: beta must be positive", o: cacheaside.Options{Early: earlyrefresh.XFetch(0)}},
		{want: "Options.MissTTL needs a header", o: cacheaside.Options{MissTTL: time.Second}, plain: true},
		{want: "Options.Hold needs a header", o: cacheaside.Options{Hold: time.Second}, plain: true},
		{want: "Options.Compress needs a header", o: cacheaside.Options{Compress: 1}, plain: true},
		{want: "Options.StaleWhile needs a header", o: cacheaside.Options{StaleWhile: time.Second}, plain: true},
		{want: "Options.StaleIfError needs a header", o: cacheaside.Options{StaleIfError: time.Second}, plain: true},
		{want: "Options.Early weighs the cost", o: cacheaside.Options{Early: earlyrefresh.XFetch(2)}, plain: true},
	} {
		ns := namespace(t, rdb)
		ns.Plain = c.plain
		if _, err := cacheaside.New(ns, load, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want one with %q", err, c.want)
		}
	}
	ns := namespace(t, rdb)
	ns.Plain = true
	for _, early := range []earlyrefresh.Policy{nil, earlyrefresh.Never, earlyrefresh.Window(0.1), earlyrefresh.Linear(0.1)} {
		if _, err := cacheaside.New(ns, load, cacheaside.Options{Early: early}); err != nil {
			t.Errorf("plain with %v: %v", early, err)
		}
	}
}

// A client whose settings would let a call wait too long is accepted, and an event reports it.
func TestDangerousSettingsAreTold(t *testing.T) {
	for _, x := range []struct {
		name   string
		client redis.UniversalClient
		want   int
	}{
		{"go-redis's defaults", redis.NewClient(&redis.Options{}), 0},
		{"a cluster client's defaults", redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}), 0},
		{"a ring", redis.NewRing(&redis.RingOptions{}), 1},
		{"no deadlines", redis.NewClient(&redis.Options{ContextTimeoutEnabled: true, ReadTimeout: -2}), 1},
		{"CacheClient", mayfly.Must(mayfly.CacheClient(&redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}})), 0},
		{"CacheClient of a cluster", mayfly.Must(mayfly.CacheClient(&redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, IsClusterMode: true})), 0},
	} {
		var events expect.Events
		ns := namespace(t, x.client)
		ns.Observer = &events
		must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
		if n := events.Count(mayfly.KindWarning, mayfly.OutcomeOK); n != x.want || len(events.All()) != n {
			t.Errorf("%s: %d warnings of %d events, want %d", x.name, n, len(events.All()), x.want)
		}
		x.client.Close()
	}
}

func TestPlainValuesNeedALeaseInTheirShard(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": "127.0.0.1:1"}})
	defer ring.Close()
	ns := namespace(t, ring)
	ns.Plain = true
	if _, err := cacheaside.New(ns, load, cacheaside.Options{}); err == nil || !strings.Contains(err.Error(), "Namespace.Redis is a redis.Ring") {
		t.Errorf("got error %v", err)
	}
}

// NotFound is the caller's code, and runs where nobody else could recover its panic.
func TestANotFoundThatPanics(t *testing.T) {
	failed := errors.New("failed")
	c := must[int, user](t)(cacheaside.New(namespace(t, mini(t)), func(context.Context, int) (user, error) { return user{}, failed },
		cacheaside.Options{NotFound: func(error) bool { panic("oh") }}))
	_, err := c.Get(t.Context(), 7)
	if !errors.Is(err, failed) || errors.Is(err, mayfly.ErrNotFound) || !strings.Contains(err.Error(), "Options.NotFound: panic: oh") {
		t.Errorf("got %v", err)
	}
	if err := c.Warm(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "keys is nil") {
		t.Errorf("Warm: %v", err)
	}
}

func TestWithoutALoaderOrANamespace(t *testing.T) {
	rdb := mini(t)
	_, one := cacheaside.New(namespace(t, rdb), nil, cacheaside.Options{})
	_, batch := cacheaside.NewBatch(namespace(t, rdb), nil, cacheaside.Options{})
	_, entry := cacheaside.NewEntry(namespace(t, rdb), nil, cacheaside.Options{})
	for _, err := range []error{one, batch, entry} {
		if err == nil || !strings.Contains(err.Error(), "the loader is nil") {
			t.Errorf("got error %v", err)
		}
	}
	_, err := cacheaside.New(mayfly.Namespace[int, user]{}, load, cacheaside.Options{})
	if err == nil || !strings.Contains(err.Error(), "Namespace.Prefix and Name are empty") || !strings.Contains(err.Error(), "Namespace.TTL") {
		t.Errorf("got error %v", err)
	}
}
