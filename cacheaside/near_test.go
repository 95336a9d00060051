package cacheaside_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/redistest"
)

// withLocal gives ns a local tier of its own.
func withLocal[K comparable, V any](t testing.TB, ns *mayfly.Namespace[K, V], o mayfly.LocalOptions) *mayfly.Local {
	t.Helper()
	o.Redis, o.Prefixes = ns.Redis, []string{ns.Prefix}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	l, err := mayfly.OpenLocal(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	ns.Local = l
	return l
}

func TestALocalHit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ns := namespace(t, srv.Client())
		l := withLocal(t, &ns, mayfly.LocalOptions{})
		if r := l.Stats().Rung; r != mayfly.Tracking {
			t.Fatalf("the rung is %v", r)
		}
		var loads atomic.Int32
		c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
			return user{fmt.Sprint("user ", key), int(loads.Add(1))}, nil
		}, cacheaside.Options{Early: earlyrefresh.Never}))
		get := func(c *cacheaside.Cache[int, user], version int) {
			t.Helper()
			defer synctest.Wait() // for the pushes of a fill
			if u, err := c.Get(t.Context(), 7); u.Version != version || err != nil {
				t.Errorf("got %+v, %v; want version %d", u, err, version)
			}
		}
		source := func(want cacheaside.Source) {
			t.Helper()
			if e, ok, err := c.Lookup(t.Context(), 7); e.Source != want || !ok || err != nil {
				t.Errorf("Lookup: %+v, %v, %v; want source %v", e, ok, err, want)
			}
		}
		get(c, 1) // loads
		source(cacheaside.SourceRedis)
		get(c, 1) // from Redis, and copies
		source(cacheaside.SourceLocal)
		asked := len(srv.Log())
		for range 10 {
			get(c, 1)
		}
		if n := len(srv.Log()) - asked; n != 0 {
			t.Errorf("local hits sent %d commands", n)
		}

		// Another process deletes.
		other := redis.NewClient(srv.Options())
		defer other.Close()
		other.Del(t.Context(), ns.Prefix+"7")
		synctest.Wait()
		get(c, 2)
		get(c, 2)
		source(cacheaside.SourceLocal)
		if err := c.Set(t.Context(), 7, user{"set", 9}); err != nil {
			t.Fatal(err)
		}
		get(c, 9)
		synctest.Wait()
		get(c, 9)
		source(cacheaside.SourceLocal)
		if err := c.Delete(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		get(c, 3)
		time.Sleep(time.Minute + time.Second)
		get(c, 4)
	})
}

// localHits returns gets that are local hits, by key type.
func localHits(t testing.TB) map[string]func() {
	srv := redistest.Start(t)
	ctx := t.Context()
	value := page{7, "a title", "some text", []string{"a", "b"}}
	ns := mayfly.Namespace[int, page]{Name: "pages", Redis: srv.Client(), Prefix: "cache:page:", TTL: time.Hour}
	withLocal(t, &ns, mayfly.LocalOptions{})
	ints := must[int, page](t)(cacheaside.New(ns, func(context.Context, int) (page, error) { return value, nil }, cacheaside.Options{}))
	named := mayfly.Namespace[string, page]{Name: "named", Redis: srv.Client(), Prefix: "cache:page:n:", TTL: time.Hour, Local: ns.Local}
	texts := must[string, page](t)(cacheaside.New(named, func(context.Context, string) (page, error) { return value, nil }, cacheaside.Options{}))
	gets := map[string]func(){
		"int": func() {
			if p, err := ints.Get(ctx, 1001); p.ID != 7 || err != nil {
				t.Fatal(p, err)
			}
		},
		"string": func() {
			if p, err := texts.Get(ctx, "a-key-of-16-byte"); p.ID != 7 || err != nil {
				t.Fatal(p, err)
			}
		},
	}
	for _, get := range gets {
		hits := ns.Local.Stats().Hits
		for range 1000 { // the push of the fill comes a moment after it
			if get(); ns.Local.Stats().Hits > hits {
				break
			}
		}
	}
	return gets
}

func TestALocalHitAllocatesNothing(t *testing.T) {
	for kind, get := range localHits(t) {
		if n := testing.AllocsPerRun(1000, get); n != 0 {
			t.Errorf("a local hit by %s key allocates %v times", kind, n)
		}
	}
}

func BenchmarkGetLocal(b *testing.B) {
	for kind, get := range localHits(b) {
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				get()
			}
		})
	}
}
