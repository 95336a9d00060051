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
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

func prefix(t testing.TB) string { return strings.ReplaceAll(t.Name(), "/", "_") + ":" }

func anEmptyKeyTouchesNothing(t *testing.T, rdb redis.UniversalClient) {
	ns := mayfly.Namespace[string, user]{Name: "users", Redis: rdb, Prefix: prefix(t), TTL: time.Minute}
	c := must[string, user](t)(cacheaside.New(ns, func(context.Context, string) (user, error) {
		t.Error("the loader was asked")
		return user{}, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	_, get := c.Get(t.Context(), "")
	_, many := c.GetMany(t.Context(), []string{""})
	_, fetch := c.Fetch(t.Context(), "", func(context.Context) (user, error) { return user{}, nil })
	_, _, lookup := c.Lookup(t.Context(), "")
	for name, err := range map[string]error{"Get": get, "GetMany": many, "Fetch": fetch, "Lookup": lookup,
		"Set": c.Set(t.Context(), "", user{}), "Delete": c.Delete(t.Context(), "a", "")} {
		if err == nil || !strings.Contains(err.Error(), "the key is empty") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if exists(t, rdb, ns.Prefix) || exists(t, rdb, ns.Prefix+"a") {
		t.Error("something was stored")
	}
}

func TestAKeyLongerThanRedisTakes(t *testing.T) {
	if !*long {
		t.Skip("it has 512 MB: run it with -long")
	}
	rdb := mini(t)
	ns := mayfly.Namespace[int, user]{Name: "users", Redis: rdb, Prefix: "u:", TTL: time.Minute}
	ns.Key = func(int) string { return strings.Repeat("k", 512<<20-1) }
	c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
	if _, err := c.Get(t.Context(), 7); err == nil || !strings.Contains(err.Error(), "Redis takes at most 536870912") {
		t.Errorf("got an error %.80v", err)
	}
}

// A value that the codec refuses is still the origin's answer: the caller gets it, and nothing is stored.
func aValueTheCodecRefuses(t *testing.T, rdb redis.UniversalClient) {
	var events expect.Events
	ns := mayfly.Namespace[string, float64]{Name: "numbers", Redis: rdb, Prefix: prefix(t), TTL: time.Minute, Observer: &events}
	c := must[string, float64](t)(cacheaside.New(ns, func(context.Context, string) (float64, error) { return math.NaN(), nil }, cacheaside.Options{RedisTimeout: patient}))
	if v, err := c.Get(t.Context(), "7"); !math.IsNaN(v) || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	if err := c.Set(t.Context(), "7", math.Inf(1)); err == nil || !strings.Contains(err.Error(), `set "`+ns.Prefix+`7"`) {
		t.Errorf("Set: got error %v", err)
	}
	if err := c.SetMany(t.Context(), map[string]float64{"1": 1, "2": math.Inf(1)}); err == nil || exists(t, rdb, ns.Prefix+"1") {
		t.Errorf("SetMany: got error %v, or something was stored", err)
	}
	if events.Count(mayfly.KindFill, mayfly.OutcomeFailed) != 1 {
		t.Errorf("got %d events", len(events.All()))
	}
	expect.Eventually(t, "nothing is stored", func() bool { return !exists(t, rdb, ns.Prefix+"7") })
}

func aNilValueIsAValue(t *testing.T, rdb redis.UniversalClient) {
	ns := mayfly.Namespace[int, *user]{Name: "users", Redis: rdb, Prefix: prefix(t), TTL: time.Minute}
	loads := 0
	c := must[int, *user](t)(cacheaside.New(ns, func(context.Context, int) (*user, error) { loads++; return nil, nil }, cacheaside.Options{RedisTimeout: patient}))
	for range 2 {
		if v, err := c.Get(t.Context(), 7); v != nil || err != nil || loads != 1 {
			t.Errorf("got %v, %v after %d loads", v, err, loads)
		}
	}
}

func whatCannotBeReadIsLoadedAnew(t *testing.T, rdb redis.UniversalClient) {
	var events expect.Events
	ns := namespace(t, rdb)
	ns.Observer = &events
	ctx, full := t.Context(), ns.Prefix+"7"
	loads := 0
	load := func(context.Context, int) (user, error) { loads++; return user{Version: loads}, nil }
	old := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{RedisTimeout: patient}))
	ns.Codec = mayfly.JSON[user]{Schema: 2}
	c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{RedisTimeout: patient}))
	for _, x := range []struct {
		name  string
		spoil func()
		loads int
	}{
		{"nothing is there", func() {}, 1},
		{"what the codec refuses", func() { rdb.Set(ctx, full, "{not JSON", time.Minute) }, 1},
		{"a later version of the record", func() { rdb.Set(ctx, full, "\xc1mfy\x09from a later version", time.Minute) }, 1},
		{"a record with a tail", func() { rdb.Append(ctx, full, "tail") }, 1},
		{"a record that was cut", func() { rdb.Set(ctx, full, rdb.Get(ctx, full).Val()[:30], time.Minute) }, 1},
		{"the empty text", func() { rdb.Set(ctx, full, "", time.Minute) }, 1},
		{"another version's codec", func() { old.Delete(ctx, 7); old.Get(ctx, 7) }, 2},
	} {
		before := loads
		x.spoil()
		for range 2 {
			if u, err := c.Get(ctx, 7); u.Version != before+x.loads || err != nil || loads != u.Version {
				t.Errorf("%s: got %+v, %v after %d loads", x.name, u, err, loads-before)
			}
		}
	}
	if n := events.Count(mayfly.KindBackend, mayfly.OutcomeFailed); n != 2 {
		t.Errorf("bytes that the codec refuses are reported %d times, want 2", n)
	}
	// A value that another program wrote as JSON is a hit.
	rdb.Set(ctx, full, `{"Name":"from Python"}`, time.Minute)
	if u, err := c.Get(ctx, 7); u.Name != "from Python" || err != nil {
		t.Errorf("got %+v, %v", u, err)
	}
}

func compress(t *testing.T, rdb redis.UniversalClient) {
	ns := mayfly.Namespace[int64, string]{Name: "texts", Redis: rdb, Prefix: prefix(t), TTL: time.Minute}
	text := strings.Repeat("the same again; ", 1000)
	random := make([]byte, 5000)
	for i, x := 0, uint32(1); i < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = byte(x >> 24)
	}
	none := func(context.Context, int64) (string, error) { return "", errors.New("not stored") }
	c := must[int64, string](t)(cacheaside.New(ns, none, cacheaside.Options{Compress: 1000, RedisTimeout: patient}))
	reader := must[int64, string](t)(cacheaside.New(ns, none, cacheaside.Options{RedisTimeout: patient}))
	for i, v := range []string{text, string(random), text[:900]} {
		i := int64(i)
		if err := c.Set(t.Context(), i, v); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*cacheaside.Cache[int64, string]{c, reader} {
			if got, err := c.Get(t.Context(), i); got != v || err != nil {
				t.Errorf("value %d came back as %d bytes, %v", i, len(got), err)
			}
		}
	}
	size := func(key string) int { return int(rdb.StrLen(t.Context(), ns.Prefix+key).Val()) }
	if size("0") > len(text)/10 || size("1") < 5000 || size("2") < 900 {
		t.Errorf("stored as %d, %d and %d bytes", size("0"), size("1"), size("2"))
	}
}
