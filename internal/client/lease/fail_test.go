package lease_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/lease"
)

// aLoadThatFails leaves a note for the waiters. The note keeps nobody from the key, and the next lease carries it on.
func aLoadThatFails(t *testing.T, rdb redis.UniversalClient, o lease.Options) {
	g, ctx := lease.New(o), t.Context()
	waiting := func(key string, seen lease.Found) lease.Acquired {
		wait, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return g.Outwait(ctx, wait, lease.Want{Key: key, Seen: seen}, nil)
	}
	theirs := func(key string) lease.Found {
		a := g.Ask(ctx, []lease.Want{{Key: key}})[0]
		if a.Standing != lease.Theirs {
			t.Fatalf("%+v, want somebody's load", a)
		}
		return a.Found
	}

	first := claim(t, g, t.Name(), lease.Found{})
	seen := theirs(t.Name())
	g.End(ctx, first.Failed("the database is down", time.Second))
	if stored := fill(t, o, first, "late"); stored {
		t.Error("a load that failed is stored")
	}
	if a := waiting(t.Name(), seen); a.Standing != lease.Ruined || a.Failure.Text != "the database is down" {
		t.Errorf("a waiter: %+v", a)
	}
	second := claim(t, g, t.Name(), lease.Found{}) // a caller that looked before
	if a := waiting(t.Name(), seen); a.Standing != lease.Ruined || a.Failure.Text != "the database is down" {
		t.Errorf("a waiter that has not seen it yet, when the next one loads: %+v", a)
	}
	if again := theirs(t.Name()); !again.Failure.Is() || again.Holder() != second.ID() {
		t.Errorf("the next lease: %+v", again)
	}
	if !fill(t, o, second, "good") {
		t.Error("the next load is not stored")
	}
	if a := waiting(t.Name(), seen); a.Standing != lease.Changed || a.State != lease.Present {
		t.Errorf("a value is better than a failure: %+v", a)
	}

	third := claim(t, g, t.Name()+"3", lease.Found{})
	g.End(ctx, third.Failed("", time.Second))
	if f := look(t, g, t.Name()+"3"); !o.Plain && f.State != lease.Failed {
		t.Errorf("%+v, want the note", f)
	}
	fourth := claim(t, g, t.Name()+"3", look(t, g, t.Name()+"3")) // a caller that looks after it
	if err := g.Delete(ctx, []string{t.Name() + "3"})[0]; err != nil {
		t.Fatal(err)
	}
	if fill(t, o, fourth, "deleted") {
		t.Error("a claim over a failure survives a Delete")
	}
}

// aLoadThatIsGivenUp fails nobody. Waiters can distinguish it from a Delete, even if the next load has already begun.
func aLoadThatIsGivenUp(t *testing.T, rdb redis.UniversalClient, o lease.Options) {
	g, ctx := lease.New(o), t.Context()
	for name, end := range map[string]func(c *lease.Claim){
		"given up": func(c *lease.Claim) { c.GiveUp(ctx, time.Second) },
		"deleted":  func(c *lease.Claim) { g.Delete(ctx, []string{c.Key()}) },
	} {
		for _, next := range []bool{false, true} {
			key := fmt.Sprint(t.Name(), name, next)
			c := claim(t, g, key, lease.Found{})
			seen := g.Ask(ctx, []lease.Want{{Key: key}})[0].Found
			reads := 0
			a := g.Outwait(ctx, ctx, lease.Want{Key: key, Seen: seen, Reading: func() {
				if reads++; reads == 2 { // it has seen that the lease lives
					if end(c); next {
						claim(t, g, key, lease.Found{})
					}
				}
			}}, nil)
			if a.Standing != lease.Changed || a.Voided != (name == "deleted") || (a.State == lease.Loading) != (next && !o.Plain) {
				t.Errorf("%s, the next has begun %v: %+v", name, next, a)
			}
			if stored := fill(t, o, c, "late"); stored {
				t.Error("a load that was given up is stored")
			}
		}
	}
}

// aLoadThatOutlastsItsTime stays the only load of its key, and its waiters need not wait any longer.
func aLoadThatOutlastsItsTime(t *testing.T, rdb redis.UniversalClient, o lease.Options) {
	g, ctx := lease.New(o), t.Context()
	c := claim(t, g, t.Name(), lease.Found{})
	seen := g.Ask(ctx, []lease.Want{{Key: t.Name()}})[0].Found
	for range 2 {
		g.Outlast(ctx, []*lease.Claim{c}, "too long")
	}
	if a := g.Outwait(ctx, ctx, lease.Want{Key: t.Name(), Seen: seen}, nil); a.Standing != lease.Ruined || a.Failure.Text != "too long" {
		t.Errorf("a waiter: %+v", a)
	}
	later := g.Ask(ctx, []lease.Want{{Key: t.Name()}})[0]
	if later.Standing != lease.Theirs || later.Holder() != c.ID() {
		t.Errorf("a later caller: %+v", later)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if a := g.Outwait(ctx, short, lease.Want{Key: t.Name(), Seen: later.Found}, nil); a.Standing != lease.Late {
		t.Errorf("a later caller that waits: %+v", a)
	}
	g.End(ctx, c.Failed("too long", time.Second))
	claim(t, g, t.Name(), lease.Found{})

	// A renewal rests, as its value is good.
	key := t.Name() + "value"
	set(t, o, g, key, "old")
	value := look(t, g, key)
	renewal := g.Renew(ctx, key, value).Claim
	for range 2 {
		g.Outlast(ctx, []*lease.Claim{renewal}, "too long")
	}
	if a := g.Ask(ctx, []lease.Want{{Key: key, Seen: value, Renew: true}})[0]; a.Standing != lease.Resting {
		t.Errorf("another renewal: %+v", a)
	}
	if f := look(t, g, key); f.State != lease.Present {
		t.Errorf("the value: %+v", f)
	}
	if o.Plain {
		return
	}

	// When its value is about to end, it takes the place with a lease that tells the waiters: a tombstone would let them load beside it.
	if err := renewal.Inherit(ctx); err != nil {
		t.Error(err)
	}
	g.Outlast(ctx, []*lease.Claim{renewal}, "too long")
	if f := look(t, g, key); f.State != lease.Loading || f.Holder() != renewal.ID() || f.Failure.Text != "too long" {
		t.Errorf("in the place of the value: %+v", f)
	}
}
