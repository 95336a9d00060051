package ttlaudit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/jitter"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/ttlaudit"
)

func TestFixDoesWhatThePlanSays(t *testing.T) {
	for _, b := range append(backends.Only("redistest", "redis 8", "redis 7.0", "valkey"), backends.DoubleCluster) {
		t.Run(b.Name, func(t *testing.T) {
			rdb, ctx := b.Open(t), t.Context()
			fill(t, rdb, 3000)
			rdb.Set(ctx, "cache:user:1:more", "v", 0)
			plan := ttlaudit.Plan{MaxRate: -1, Give: []ttlaudit.Give{
				{Pattern: "cache:user:*", TTL: 24 * time.Hour},
				{Pattern: "queue:3", TTL: time.Minute, Jitter: &jitter.Spread{}},
				{Pattern: "nosuch:**", TTL: time.Minute},
			}}
			const want = "[{cache:user:* 3000 1000 2000} {queue:3 1 1 0} {nosuch:** 0 0 0}]" // matched, given, had one
			check := func(applied bool, want string) {
				t.Helper()
				r, err := ttlaudit.Fix(ctx, rdb, plan)
				if err != nil || r.Applied != applied || !r.Complete || r.Keys != 3048 || fmt.Sprint(r.Gives) != want {
					t.Errorf("%+v, %v", r, err)
				}
			}
			none := func() int64 {
				r, err := ttlaudit.Run(ctx, rdb, ttlaudit.Options{MaxRate: -1, Sizes: -1})
				if err != nil {
					t.Fatal(err)
				}
				return r.NoTTL
			}
			check(false, want)
			if n := none(); n != 1007 {
				t.Errorf("after a dry run %d keys have no TTL", n)
			}
			plan.Apply = true
			check(true, want)
			if n := none(); n != 6 { // queues, config, and cache:user:1:more, which is not cache:user:*
				t.Errorf("%d keys have no TTL", n)
			}
			ends := map[int64]bool{}
			for i := range 300 {
				left := rdb.PTTL(ctx, fmt.Sprintf("cache:user:%d", i)).Val()
				if given := i%3 == 0; given != (left > time.Hour) || given && (left < 21*time.Hour || left > 27*time.Hour) {
					t.Fatalf("cache:user:%d has %v", i, left)
				}
				ends[int64(left/time.Minute)] = true
			}
			if len(ends) < 50 {
				t.Errorf("100 keys end in %d different minutes", len(ends))
			}
			check(true, "[{cache:user:* 3000 0 3000} {queue:3 1 0 1} {nosuch:** 0 0 0}]")
		})
	}
}

// A key that got a TTL from somebody else between two looks keeps that one.
func TestFixNeverChangesATTL(t *testing.T) {
	srv := redistest.Start(t)
	ctx := t.Context()
	srv.Client().Set(ctx, "a:1", "v", 0)
	rdb := redis.NewClient(srv.Options())
	defer rdb.Close()
	rdb.AddHook(meddling{after: func(*redis.ScanCmd) { srv.Client().Expire(ctx, "a:1", time.Minute) }})
	r, err := ttlaudit.Fix(ctx, rdb, ttlaudit.Plan{Apply: true, Give: []ttlaudit.Give{{Pattern: "a:*", TTL: time.Hour}}})
	if left := srv.Client().TTL(ctx, "a:1").Val(); err != nil || left != time.Minute || r.Gives[0].Given != 0 {
		t.Errorf("%v left, %+v, %v", left, r, err)
	}
}

func TestFixIsCancelled(t *testing.T) {
	srv := redistest.Start(t)
	fill(t, srv.Client(), 3000)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := ttlaudit.Fix(ctx, srv.Client(), ttlaudit.Plan{Give: []ttlaudit.Give{{Pattern: "a:*", TTL: time.Hour}}, Progress: func(ttlaudit.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) || r.Complete || r.Keys == 0 || r.Keys > 2000 {
		t.Errorf("%+v, %v", r, err)
	}
}

// endsAt is a context that ends when it has been asked so often whether it has.
type endsAt struct {
	context.Context
	left int
}

func (c *endsAt) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// A fix that is cancelled does not finish its page: nothing of the rest is written.
func TestFixIsCancelledWithinAPage(t *testing.T) {
	srv := redistest.Start(t)
	fill(t, srv.Client(), 60)
	srv.ClearLog()
	ctx := &endsAt{t.Context(), 20}
	r, err := ttlaudit.Fix(ctx, srv.Client(), ttlaudit.Plan{MaxRate: -1, Apply: true, Give: []ttlaudit.Give{{Pattern: "cache:user:*", TTL: time.Hour}}})
	if !errors.Is(err, context.Canceled) || r == nil || r.Complete || r.Keys != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, line := range srv.Log() {
		if strings.HasPrefix(strings.ToLower(line), "pexpire") {
			t.Fatal(line)
		}
	}
}

// Writes that were sent without an answer are reported.
func TestAFixWhoseReplyIsLost(t *testing.T) {
	srv := redistest.Start(t)
	fill(t, srv.Client(), 60)
	srv.DropReply("pexpire")
	r, err := ttlaudit.Fix(t.Context(), srv.Client(), ttlaudit.Plan{MaxRate: -1, Apply: true, Give: []ttlaudit.Give{{Pattern: "cache:user:*", TTL: time.Hour}}})
	if err == nil || r.Complete || r.Unknown == 0 || r.Unknown+r.Gives[0].Matched != 60 {
		t.Errorf("%+v, %v", r, err)
	}
}

// The first pattern that fits a key counts, so one that no key is left for is a mistake.
func TestPlansWhosePatternsOverlap(t *testing.T) {
	for _, c := range []struct{ first, then, says string }{
		{"a:*", "a:*", `Plan.Give[1].Pattern "a:*" is the same as that of Give[0]: remove one`},
		{"a:**", "a:*", `Plan.Give[1].Pattern "a:*" can never match, since Give[0], "a:**", matches all its keys first: put the narrower pattern first`},
		{"a:**", "a:b:*:c", "can never match"},
		{"a:*", "a:b", "can never match"},
		{"a:*b*", "a:x*b", "can never match"},
		{"a:*", `a:\*`, "can never match"},
		{"a:*", "a:*:b", ""},
		{"a:*", "a:**", ""},
		{"a:b", "a:*", ""},
		{"a:*1", "a:*", ""},
		{"a:*1", "a:1*", ""},
		{`a:\*`, "a:*", ""},
	} {
		err := ttlaudit.Plan{Give: []ttlaudit.Give{{Pattern: c.first, TTL: time.Hour}, {Pattern: c.then, TTL: time.Minute}}}.Validate()
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, then %s: %v", c.first, c.then, err)
		}
	}
}

func TestBadPlans(t *testing.T) {
	for says, g := range map[string]ttlaudit.Give{
		"Pattern is empty: ": {TTL: time.Hour},
		"1s, got -1h0m0s":    {Pattern: "a:*", TTL: -time.Hour},
		`Pattern "*" would`:  {Pattern: "*", TTL: time.Hour},
		`Pattern "*:**" `:    {Pattern: "*:**", TTL: time.Hour},
		"has ** before":      {Pattern: "a:**:b", TTL: time.Hour},
		"TTL must be at lea": {Pattern: "a:*", TTL: time.Millisecond},
		"TTL must be at mos": {Pattern: "a:*", TTL: 200 * 365 * 24 * time.Hour},
		"Jitter.Fraction":    {Pattern: "a:*", TTL: time.Hour, Jitter: &jitter.Spread{Fraction: 2}},
	} {
		r, err := ttlaudit.Fix(t.Context(), nil, ttlaudit.Plan{Give: []ttlaudit.Give{g}})
		if r != nil || err == nil || !strings.Contains(err.Error(), "Plan.Give[0].") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := ttlaudit.Fix(t.Context(), nil, ttlaudit.Plan{}); err == nil || !strings.Contains(err.Error(), "Plan.Give is empty") {
		t.Error(err)
	}
}
