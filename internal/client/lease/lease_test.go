package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// value is what a fill stores: a record with the claim's id, or in plain mode the body alone.
func value(o lease.Options, id record.ID, body string) []byte {
	if o.Plain {
		return []byte(body)
	}
	rec := append(record.Begin(nil, record.Header{ID: id, Fresh: time.Minute}), body...)
	record.Seal(rec)
	return rec
}

func look(t *testing.T, g *lease.Guard, key string) lease.Found {
	t.Helper()
	f, err := g.Look(t.Context(), key, true)
	if err != nil {
		t.Fatalf("Look(%q): %v", key, err)
	}
	return f
}

func claim(t *testing.T, g *lease.Guard, key string, seen lease.Found) *lease.Claim {
	t.Helper()
	a := g.Claim(t.Context(), key, seen)
	if a.Claim == nil || a.Err != nil {
		t.Fatalf("Claim(%q) found %+v, %v", key, a.Found, a.Err)
	}
	return a.Claim
}

// ending is whether fills have Redis write into a record when it ends.
var ending bool

func fill(t *testing.T, o lease.Options, c *lease.Claim, body string) bool {
	t.Helper()
	if ending && !o.Plain {
		f := lease.New(o).FillMany(t.Context(), []lease.Fill{{Claim: c, Value: value(o, c.ID(), body), TTL: time.Minute, Ends: true}})[0]
		if f.Err != nil {
			t.Fatalf("FillMany: %v", f.Err)
		}
		return f.Stored
	}
	stored, err := c.Fill(t.Context(), value(o, c.ID(), body), time.Minute)
	if err != nil {
		t.Fatalf("Fill: %v", err)
	}
	return stored
}

func set(t *testing.T, o lease.Options, g *lease.Guard, key, body string) {
	t.Helper()
	if err := g.Set(t.Context(), []lease.Value{{Key: key, Bytes: value(o, record.NewID(), body), TTL: time.Minute}})[0]; err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, g *lease.Guard, key string) {
	t.Helper()
	if err := g.Delete(t.Context(), []string{key})[0]; err != nil {
		t.Fatal(err)
	}
}

func body(t *testing.T, g *lease.Guard, key string) string {
	t.Helper()
	f := look(t, g, key)
	if f.State != lease.Present {
		return fmt.Sprintf("(state %d)", f.State)
	}
	return string(f.Body)
}

func aMissIsClaimedOnceAndFilled(t *testing.T, _ redis.UniversalClient, o lease.Options) {
	g, key := lease.New(o), t.Name()
	if f := look(t, g, key); f.State != lease.Absent {
		t.Fatalf("an absent key is %+v", f)
	}
	first := claim(t, g, key, lease.Found{})
	if a := g.Claim(t.Context(), key, lease.Found{}); a.Claim != nil || a.State != lease.Loading || a.Err != nil {
		t.Fatalf("the second claim: %+v", a)
	}
	if !o.Plain && look(t, g, key).State != lease.Loading {
		t.Error("a reader does not see that it is loading")
	}
	if !fill(t, o, first, "loaded") {
		t.Fatal("the fill was refused")
	}
	f := look(t, g, key)
	if f.State != lease.Present || string(f.Body) != "loaded" || f.Left <= 58*time.Second || f.Left > time.Minute {
		t.Errorf("the value is %+v", f)
	}
	if !o.Plain && f.Header.ID != first.ID() {
		t.Error("the value does not carry its claim's id")
	}
}

// Whatever happens to the key after the claim, the older value is not stored over it.
func whatHappensToTheKeyEndsTheRightToFill(t *testing.T, rdb redis.UniversalClient, o lease.Options) {
	ctx := t.Context()
	for _, c := range []struct {
		name      string
		happens   func(g *lease.Guard, key string)
		want      string
		notPlain  bool // plain mode's documented price
		keepPlain bool
	}{
		{name: "Delete", happens: func(g *lease.Guard, key string) { remove(t, g, key) }, want: "(state 0)"},
		{name: "Set", happens: func(g *lease.Guard, key string) { set(t, o, g, key, "set") }, want: "set"},
		{name: "another program's SET", happens: func(_ *lease.Guard, key string) { rdb.Set(ctx, key, "foreign", time.Minute) }, want: "foreign"},
		{name: "another program's DEL", happens: func(_ *lease.Guard, key string) { rdb.Del(ctx, key) }, want: "(state 0)", notPlain: true},
		{name: "expiry", happens: func(_ *lease.Guard, key string) { rdb.PExpire(ctx, key, -1) }, want: "(state 0)", notPlain: true},
		{name: "a younger claim", happens: func(g *lease.Guard, key string) { remove(t, g, key); claim(t, g, key, lease.Found{}) }, want: "(state 2)", notPlain: true},
		{name: "a younger fill", happens: func(g *lease.Guard, key string) {
			remove(t, g, key)
			fill(t, o, claim(t, g, key, lease.Found{}), "younger")
		}, want: "younger"},
	} {
		if o.Plain && c.notPlain {
			continue
		}
		g, key := lease.New(o), t.Name()+c.name
		old := claim(t, g, key, lease.Found{})
		c.happens(g, key)
		if fill(t, o, old, "old") {
			t.Errorf("%s: the old value was stored", c.name)
		}
		if got := body(t, g, key); got != c.want {
			t.Errorf("%s: the key holds %s, want %s", c.name, got, c.want)
		}
	}
}

func clear(t *testing.T, rdb redis.UniversalClient, o lease.Options) {
	g, prefix := lease.New(o), t.Name()+`[*]\?:`
	const n = 1200
	values := make([]lease.Value, n)
	for i := range values {
		values[i] = lease.Value{Key: fmt.Sprint(prefix, i), Bytes: value(o, record.NewID(), "x"), TTL: time.Minute}
	}
	if err := errors.Join(g.Set(t.Context(), values)...); err != nil {
		t.Fatal(err)
	}
	set(t, o, g, t.Name()+`[*]\x:`, "a neighbour, which the pattern would match if it were not quoted")
	loading := claim(t, g, prefix+"loading", lease.Found{})
	var removed atomic.Int64
	if err := g.Clear(t.Context(), prefix, func(n int) { removed.Add(int64(n)) }); err != nil {
		t.Fatal(err)
	}
	if removed.Load() != n+1 {
		t.Errorf("removed %d, want %d values and a lease", removed.Load(), n)
	}
	if fill(t, o, loading, "old") {
		t.Error("a load begun before Clear was stored after it")
	}
	if got := body(t, g, t.Name()+`[*]\x:`); !strings.HasPrefix(got, "a neighbour") {
		t.Errorf("the neighbour is %s", got)
	}
}

// A stored value that cannot be used (of another codec version, say) is replaced by one caller, not by all.
func unusableBytesAreClaimedOnce(t *testing.T, rdb redis.UniversalClient, o lease.Options) {
	g, key := lease.New(o), t.Name()
	for name, bytes := range map[string]string{
		"a value":        string(value(o, record.NewID(), "version 1")),
		"foreign bytes":  "not ours",
		"alien":          "\xc1mfy\x07from the future, as long as it likes",
		"the empty text": "",
	} {
		rdb.Set(t.Context(), key, bytes, time.Minute)
		seen := look(t, g, key)
		var won atomic.Int32
		var winner atomic.Pointer[lease.Claim]
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				a := g.Claim(t.Context(), key, seen)
				switch {
				case a.Claim != nil && a.Err == nil:
					won.Add(1)
					winner.Store(a.Claim)
				case a.State != lease.Loading || a.Err != nil:
					t.Errorf("%s: a loser found %+v, %v", name, a.Found, a.Err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%s: %d claims", name, won.Load())
		}
		if !fill(t, o, winner.Load(), "version 2") || body(t, g, key) != "version 2" {
			t.Errorf("%s: the fill was refused: %s", name, body(t, g, key))
		}
		// A caller that saw the old bytes late finds the new value.
		if a := g.Claim(t.Context(), key, seen); a.Claim != nil || string(a.Body) != "version 2" || a.Err != nil {
			t.Errorf("%s: a late claim got %+v", name, a)
		}
		remove(t, g, key)
		if o.Plain {
			continue
		}
		// And a caller that saw them before they went claims the absent key.
		claim(t, g, key, seen).Release(t.Context())
	}
}

func aRenewalKeepsTheValueAndIsOne(t *testing.T, rdb redis.UniversalClient, o lease.Options) {
	g, key := lease.New(o), t.Name()
	set(t, o, g, key, "one")
	seen := look(t, g, key)
	first := g.Renew(t.Context(), key, seen)
	if first.Claim == nil || first.Err != nil {
		t.Fatalf("got %+v", first)
	}
	if second := g.Renew(t.Context(), key, seen); second.Claim != nil || second.State != lease.Loading {
		t.Errorf("a second renewal of the same fill: %+v", second)
	}
	if body(t, g, key) != "one" {
		t.Error("the value is not readable while it is renewed")
	}
	if !fill(t, o, first.Claim, "two") || body(t, g, key) != "two" {
		t.Error("the renewal was refused")
	}
	if late := g.Renew(t.Context(), key, seen); late.Claim != nil {
		t.Error("a late decision about the previous value renews the next one")
	}
	next := g.Renew(t.Context(), key, look(t, g, key))
	if next.Claim == nil {
		t.Fatal("the renewed value cannot be renewed")
	}
	remove(t, g, key)
	if fill(t, o, next.Claim, "three") || look(t, g, key).State != lease.Absent {
		t.Error("a renewal was stored over a Delete")
	}
}

func aRenewalThatFails(t *testing.T, _ redis.UniversalClient, o lease.Options) {
	g, key, ctx := lease.New(o), t.Name(), t.Context()
	set(t, o, g, key, "one")
	seen := look(t, g, key)
	first := g.Renew(ctx, key, seen).Claim
	if err := first.Release(ctx); err != nil {
		t.Fatal(err)
	}
	second := g.Renew(ctx, key, seen)
	if second.Claim == nil {
		t.Fatalf("released, and yet %+v", second)
	}
	if err := second.Claim.Rest(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	if third := g.Renew(ctx, key, seen); third.Claim != nil || third.State != lease.Held {
		t.Errorf("nobody is to try for a minute, and yet %+v", third)
	}
}

func keepAndRelease(t *testing.T, rdb redis.UniversalClient, o lease.Options) {
	g, key, ctx := lease.New(o), t.Name(), t.Context()
	c := claim(t, g, key, lease.Found{})
	lock := key
	const half = 30 * time.Second // of a long lease
	if o.Plain {
		lock = lease.SiblingName(key)
	}
	rdb.PExpire(ctx, lock, half)
	if held, err := c.Keep(ctx); !held || err != nil {
		t.Fatalf("Keep: %v, %v", held, err)
	}
	if left := rdb.PTTL(ctx, lock).Val(); left <= half {
		t.Errorf("kept for %v", left)
	}
	c.Release(ctx)
	if held, err := c.Keep(ctx); held || err != nil {
		t.Errorf("Keep after Release: %v, %v", held, err)
	}
	other := claim(t, g, key, lease.Found{})
	rdb.PExpire(ctx, lock, half)
	if held, err := c.Keep(ctx); held || err != nil {
		t.Errorf("Keep of a claim that is another's by now: %v, %v", held, err)
	}
	if left := rdb.PTTL(ctx, lock).Val(); left > half {
		t.Errorf("Keep prolonged somebody else's claim to %v", left)
	}
	c.Release(ctx)
	if held, _ := other.Keep(ctx); !held {
		t.Error("Release took somebody else's claim")
	}
}

func aTombstoneRefusesFills(t *testing.T, _ redis.UniversalClient, o lease.Options) {
	if o.Plain {
		t.Skip("a tombstone is a record")
	}
	o.Hold = time.Minute
	g, key := lease.New(o), t.Name()
	old := claim(t, g, key, lease.Found{})
	remove(t, g, key)
	if look(t, g, key).State != lease.Held {
		t.Errorf("after Delete the key holds %s", body(t, g, key))
	}
	if a := g.Claim(t.Context(), key, lease.Found{}); a.Claim != nil || a.State != lease.Held {
		t.Errorf("a tombstone was claimed: %+v", a)
	}
	if fill(t, o, old, "old") {
		t.Error("a fill passed the tombstone")
	}
	set(t, o, g, key, "set")
	if body(t, g, key) != "set" {
		t.Error("a Set did not pass the tombstone")
	}
}

func manyKeysInOneTrip(t *testing.T, _ redis.UniversalClient, o lease.Options) {
	g, ctx := lease.New(o), t.Context()
	const n = 100
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint(t.Name(), ":", i)
		if i%2 == 0 {
			set(t, o, g, keys[i], keys[i])
		}
	}
	var missing []string
	var wants []lease.Want
	for i, a := range g.LookMany(ctx, keys, true) {
		want := lease.Absent
		if i%2 == 0 {
			want = lease.Present
		}
		if a.Err != nil || a.State != want || want == lease.Present && string(a.Body) != keys[i] {
			t.Fatalf("key %d: %+v", i, a)
		}
		if want == lease.Absent {
			missing, wants = append(missing, keys[i]), append(wants, lease.Want{Key: keys[i]})
		}
	}
	var fills []lease.Fill
	for i, a := range g.Ask(ctx, wants) {
		if a.Claim == nil || a.Err != nil || a.Claim.Key() != missing[i] {
			t.Fatalf("claim %d: %+v", i, a)
		}
		fills = append(fills, lease.Fill{Claim: a.Claim, Value: value(o, a.Claim.ID(), missing[i]), TTL: time.Minute})
	}
	remove(t, g, missing[0])
	for i, f := range g.FillMany(ctx, fills) {
		if f.Err != nil || f.Stored != (i != 0) {
			t.Errorf("fill %d: %+v", i, f)
		}
	}
	for i, err := range g.Delete(ctx, keys) {
		if err != nil {
			t.Errorf("delete %d: %v", i, err)
		}
	}
	for i, a := range g.LookMany(ctx, keys, false) {
		if a.State != lease.Absent || a.Err != nil {
			t.Errorf("key %d after Delete: %+v", i, a)
		}
	}
}

// A server that restarted has no scripts: they are sent again, those of one trip in one trip.
func scriptsThatAServerForgot(t *testing.T, rdb redis.UniversalClient, o lease.Options) {
	g, ctx := lease.New(o), t.Context()
	for round := range 2 {
		forget := func(ctx context.Context, c *redis.Client) error { return c.ScriptFlush(ctx).Err() }
		var err error
		if cluster, ok := rdb.(*redis.ClusterClient); ok {
			err = cluster.ForEachMaster(ctx, forget)
		} else {
			err = forget(ctx, rdb.(*redis.Client))
		}
		if err != nil {
			t.Fatal(err)
		}
		var fills []lease.Fill
		for i := range 20 {
			c := claim(t, g, fmt.Sprint(t.Name(), round, i), lease.Found{})
			fills = append(fills, lease.Fill{Claim: c, Value: value(o, c.ID(), "x"), TTL: time.Minute})
		}
		for i, f := range g.FillMany(ctx, fills) {
			if !f.Stored || f.Err != nil {
				t.Errorf("fill %d: %+v", i, f)
			}
		}
	}
}
