package cacheaside_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

func load(context.Context, int) (user, error) { return user{}, nil }

func TestWrongOptionsAreNamed(t *testing.T) {
	rdb, _ := mini(t)
	for _, c := range []struct {
		want  string
		o     cacheaside.Options
		plain bool
	}{
		{want: "Options.MissTTL must be at least 1ms, got -1s", o: cacheaside.Options{MissTTL: -time.Second}},
		{want: "Options.Hold must be at least 1ms, got 1ns", o: cacheaside.Options{Hold: 1}},
		{want: "Options.Stale.While must be at least 1ms", o: cacheaside.Options{Stale: cacheaside.Stale{While: -1}}},
		{want: "Options.Stale.IfError must be at most", o: cacheaside.Options{Stale: cacheaside.Stale{IfError: math.MaxInt64}}},
		{want: "Options.Load.Timeout must be at least 1ms", o: cacheaside.Options{Load: cacheaside.Load{Timeout: -1}}},
		{want: "Options.Load.Soft must be at least 1ms", o: cacheaside.Options{Load: cacheaside.Load{Soft: -1}}},
		{want: "Options.Load.Renewals must not be negative, got -1", o: cacheaside.Options{Load: cacheaside.Load{Renewals: -1}}},
		{want: "Options.Faults.RedisTimeout must be at least 1ms", o: cacheaside.Options{Faults: cacheaside.Faults{RedisTimeout: -1}}},
		{want: "Options.Faults.Loads must not be negative, got -1", o: cacheaside.Options{Faults: cacheaside.Faults{Loads: -1}}},
		{want: "Options.Faults.Queue must not be negative, got -1", o: cacheaside.Options{Faults: cacheaside.Faults{Queue: -1}}},
		{want: "Options.Compress must not be negative, got -1", o: cacheaside.Options{Compress: -1}},
		{want: "Options.Early: earlyrefresh.XFetch: beta must be positive", o: cacheaside.Options{Early: earlyrefresh.XFetch(0)}},
		{want: "Options.MissTTL needs a header", o: cacheaside.Options{MissTTL: time.Second}, plain: true},
		{want: "Options.Hold needs a header", o: cacheaside.Options{Hold: time.Second}, plain: true},
		{want: "Options.Compress needs a header", o: cacheaside.Options{Compress: 1}, plain: true},
		{want: "Options.Stale needs a header", o: cacheaside.Options{Stale: cacheaside.Stale{While: time.Second}}, plain: true},
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

func TestWithoutALoaderOrANamespace(t *testing.T) {
	rdb, _ := mini(t)
	_, one := cacheaside.New(namespace(t, rdb), nil, cacheaside.Options{})
	_, batch := cacheaside.NewBatch(namespace(t, rdb), nil, cacheaside.Options{})
	_, entry := cacheaside.NewEntry(namespace(t, rdb), nil, cacheaside.Options{})
	for _, err := range []error{one, batch, entry} {
		if err == nil || !strings.Contains(err.Error(), "the loader is nil") {
			t.Errorf("got error %v", err)
		}
	}
	_, err := cacheaside.New(mayfly.Namespace[int, user]{}, load, cacheaside.Options{})
	if err == nil || !strings.Contains(err.Error(), "Namespace.Prefix is empty") || !strings.Contains(err.Error(), "Namespace.TTL") {
		t.Errorf("got error %v", err)
	}
}

func TestAnEmptyKeyTouchesNothing(t *testing.T) {
	rdb, m := mini(t)
	ns := mayfly.Namespace[string, user]{Name: "users", Redis: rdb, Prefix: "u:", TTL: time.Minute}
	c := must[string, user](t)(cacheaside.New(ns, func(context.Context, string) (user, error) {
		t.Error("the loader was asked")
		return user{}, nil
	}, cacheaside.Options{}))
	_, get := c.Get(t.Context(), "")
	_, many := c.GetMany(t.Context(), []string{""})
	for name, err := range map[string]error{"Get": get, "GetMany": many, "Set": c.Set(t.Context(), "", user{}), "Delete": c.Delete(t.Context(), "a", "")} {
		if err == nil || !strings.Contains(err.Error(), "the key is empty") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if len(m.Keys()) != 0 {
		t.Errorf("Redis holds %q", m.Keys())
	}
}

// A value the codec refuses is still the origin's answer: who asked gets it, and nothing is stored.
func TestAValueTheCodecRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, m := mini(t)
		var events seen
		ns := mayfly.Namespace[int, float64]{Name: "numbers", Redis: rdb, Prefix: "n:", TTL: time.Minute, Observer: &events}
		c := must[int, float64](t)(cacheaside.New(ns, func(context.Context, int) (float64, error) { return math.NaN(), nil }, cacheaside.Options{}))
		if v, err := c.Get(t.Context(), 7); !math.IsNaN(v) || err != nil {
			t.Errorf("got %v, %v", v, err)
		}
		if err := c.Set(t.Context(), 7, math.Inf(1)); err == nil || !strings.Contains(err.Error(), `set "n:7"`) {
			t.Errorf("Set: got error %v", err)
		}
		if events.count(mayfly.Fill, mayfly.Failed) != 1 || len(m.Keys()) != 0 {
			t.Errorf("events %+v, Redis holds %q", events.events, m.Keys())
		}
	})
}

func TestANilValueIsAValue(t *testing.T) {
	rdb, _ := mini(t)
	ns := mayfly.Namespace[int, *user]{Name: "users", Redis: rdb, Prefix: "u:", TTL: time.Minute}
	loads := 0
	c := must[int, *user](t)(cacheaside.New(ns, func(context.Context, int) (*user, error) { loads++; return nil, nil }, cacheaside.Options{}))
	for range 2 {
		if v, err := c.Get(t.Context(), 7); v != nil || err != nil || loads != 1 {
			t.Errorf("got %v, %v after %d loads", v, err, loads)
		}
	}
}

func TestWhatCannotBeReadIsLoadedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		var events seen
		ns := namespace(t, rdb)
		ns.Observer = &events
		loads := 0
		load := func(context.Context, int) (user, error) { loads++; return user{Version: loads}, nil }
		old := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
		ns.Codec = mayfly.JSON[user]{Schema: 2}
		c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
		for want, spoil := range []func(){ // by the version that is then loaded
			1: func() {},
			2: func() { rdb.Set(t.Context(), ns.Prefix+"7", "{not JSON", time.Minute) },
			3: func() { rdb.Set(t.Context(), ns.Prefix+"7", "\xc1mfy\x09from a later version", time.Minute) },
			4: func() { rdb.Append(t.Context(), ns.Prefix+"7", "tail") },
			6: func() { old.Delete(t.Context(), 7); old.Get(t.Context(), 7) }, // another version's codec
		} {
			if spoil == nil {
				continue
			}
			spoil()
			for range 2 {
				if u, err := c.Get(t.Context(), 7); u.Version != want || err != nil {
					t.Errorf("got %+v, %v, want version %d", u, err, want)
				}
			}
		}
		if events.count(mayfly.Backend, mayfly.Failed) != 1 {
			t.Error("bytes that the codec refuses are not told")
		}
		// What another program wrote as JSON is a hit.
		rdb.Set(t.Context(), ns.Prefix+"7", `{"Name":"from Python"}`, time.Minute)
		if u, err := c.Get(t.Context(), 7); u.Name != "from Python" || err != nil {
			t.Errorf("got %+v, %v", u, err)
		}
	})
}

func TestCompress(t *testing.T) {
	rdb, m := mini(t)
	ns := mayfly.Namespace[int, string]{Name: "texts", Redis: rdb, Prefix: "t:", TTL: time.Minute}
	text := strings.Repeat("the same again; ", 1000)
	random := make([]byte, 5000)
	for i, x := 0, uint32(1); i < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = byte(x >> 24)
	}
	c := must[int, string](t)(cacheaside.New(ns, func(context.Context, int) (string, error) { return "", errors.New("not stored") }, cacheaside.Options{Compress: 1000}))
	reader := must[int, string](t)(cacheaside.New(ns, func(context.Context, int) (string, error) { return "", errors.New("not stored") }, cacheaside.Options{}))
	for i, v := range []string{text, string(random), text[:900]} {
		if err := c.Set(t.Context(), i, v); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*cacheaside.Cache[int, string]{c, reader} {
			if got, err := c.Get(t.Context(), i); got != v || err != nil {
				t.Errorf("value %d came back as %d bytes, %v", i, len(got), err)
			}
		}
	}
	size := func(key string) int { v, _ := m.Get(key); return len(v) }
	if size("t:0") > len(text)/10 || size("t:1") < 5000 || size("t:2") < 900 {
		t.Errorf("stored as %d, %d and %d bytes", size("t:0"), size("t:1"), size("t:2"))
	}
}
