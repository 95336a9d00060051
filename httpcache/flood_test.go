package httpcache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// flood requests one URL with n different values of X-Color, from several clients at once, and reports answers that were for another value.
func flood(t *testing.T, h http.Handler, n int) {
	const clients = 4
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			r := httptest.NewRequest("GET", "http://a.example/", nil)
			for i := client; i < n; i += clients {
				color := fmt.Sprint("color-", i)
				r.Header.Set("X-Color", color)
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != 200 || w.Body.String() != "the page in "+color {
					t.Errorf("%s got %d %.80q", color, w.Code, w.Body)
				}
			}
		})
	}
	wg.Wait()
}

// inColor answers each color with its own page, with the given Cache-Control.
func inColor(cacheControl string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		set(w.Header(), []string{"Cache-Control: " + cacheControl, "Vary: X-Color"})
		fmt.Fprint(w, "the page in ", r.Header.Get("X-Color"))
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Clients that send a hundred thousand values of a field that an answer varies by get their answers, and leave no more behind than
// MaxVariants allows: in Redis, in the index, in the local tier, and in the process. (A plain run sends fewer.)
func TestAHundredThousandVariants(t *testing.T) {
	n := effort.Times(600, 100_000)
	for name, withTier := range map[string]bool{"Redis only": false, "with a local tier": true} {
		t.Run(name, func(t *testing.T) {
			db := mayfly.Must(embedded.Open(embedded.Options{}))
			defer db.Close(context.Background())
			rdb, events := db.Client(), &outcomes{}
			opt := options(t, rdb)
			opt.Namespace.Observer = events
			var local *mayfly.Local
			if withTier {
				local = mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{opt.Namespace.Prefix}, MaxBytes: 64 << 20}))
				defer local.Close(context.Background())
				opt.Namespace.Local = local
			}
			cache := must(t)(opt.New())
			h := cache.Handler(inColor(fresh))
			flood(t, h, 500)
			before := heap()
			began := time.Now()
			flood(t, h, n)
			took := time.Since(began)
			if err := cache.Close(t.Context()); err != nil { // which ends the work in the background
				t.Fatal(err)
			}
			grown := heap() - before

			// An index, its variants, and the leases of requests that were refused at the very end.
			if keys := rdb.DBSize(t.Context()).Val(); keys < 2 || keys > 64+1+4 {
				t.Errorf("%d keys", keys)
			}
			var size, index int64
			for _, key := range rdb.Keys(t.Context(), "*").Val() {
				size += rdb.StrLen(t.Context(), key).Val()
				if !strings.Contains(key, " ") {
					index = rdb.StrLen(t.Context(), key).Val()
				}
				if ttl := rdb.PTTL(t.Context(), key).Val(); ttl <= 0 {
					t.Errorf("%q lives for ever", key)
				}
			}
			if index == 0 || index > 64*40 || size > 64*2048 {
				t.Errorf("an index of %d bytes, %d bytes in all", index, size)
			}
			if local != nil {
				if s := local.Stats(); s.Entries > 64+1+4 || s.Bytes > 69*4096 {
					t.Errorf("the local tier holds %d entries, %d bytes", s.Entries, s.Bytes)
				}
			}
			if grown > 8<<20 {
				t.Errorf("the heap has grown by %d KiB", grown>>10)
			}
			stats, left, floods := cache.Stats(), events.with(tooMany), events.with(flooded)
			if windows := int(took/(10*time.Second)) + 2; left < 256 || left > windows*(256+4) || floods < 1 || floods > windows || int(stats.Stored) > left+64 {
				t.Errorf("%d stored; %d events say that others left, %d that they were too many", stats.Stored, left, floods)
			}
			t.Logf("%v: %d stored, %d left; %d bytes in Redis; the heap has grown by %d KiB", took, stats.Stored, left, size, grown>>10)
		})
	}
}

const (
	tooMany = "the URL has more variants than MaxVariants: the one stored first was dropped"
	flooded = "the URL has so many new variants that none is stored for a while"
)

// The same with answers for one client alone: that is remembered for a while, but not in Redis once for each value.
func TestManyVariantsThatAreNotForOthers(t *testing.T) {
	rdb := redistest.Start(t).Client()
	cache := must(t)(options(t, rdb).New())
	say := fresh
	h := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inColor(say)(w, r) }))
	flood(t, h, 1)
	say = "private"
	flood(t, h, 1000)
	expect.Eventually(t, "nothing is left of them", func() bool { return rdb.DBSize(t.Context()).Val() == 3 }) // while a lease is given up, a fill is refused
	say = fresh
	r := httptest.NewRequest("GET", "http://a.example/", nil)
	r.Header.Set("X-Color", "color-999") // which is remembered
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); !strings.Contains(w.Header().Get("Cache-Status"), "; stored") {
		t.Errorf("what is for all now: %s", w.Header().Get("Cache-Status"))
	}
	if err := cache.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) != 4 {
		t.Errorf("%d keys, want an index, two variants and the purges: %.200q", len(keys), keys)
	}
}

// A handler that keeps changing its Vary leaves no variants of its earlier answers.
func TestAnIndexTakesItsVariantsWithIt(t *testing.T) {
	rdb := redistest.Start(t).Client()
	cache := must(t)(options(t, rdb).New())
	h := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		set(w.Header(), []string{"Cache-Control: " + fresh, "Vary: " + r.Header.Get("By")})
		fmt.Fprint(w, r.Header)
	}))
	for i := range 200 {
		header := []string{"By: X-Color", fmt.Sprint("X-Color: ", i)}
		if i%2 == 1 {
			header = []string{"By: X-Size", fmt.Sprint("X-Size: ", i)}
		}
		if body, status := get(t, h, "http://a.example/", header...); !strings.Contains(body, fmt.Sprint(i)) || !strings.Contains(status, "; stored") {
			t.Fatalf("%d: %q, %s", i, body, status)
		}
	}
	if err := cache.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if keys := rdb.Keys(t.Context(), "*").Val(); len(keys) != 3 {
		t.Errorf("%d keys, want an index, a variant and the purges: %.200q", len(keys), keys)
	}
}

// distinctValuesAreBounded is the flood on every backend.
func distinctValuesAreBounded(t *testing.T, rdb redis.UniversalClient) {
	opt := options(t, rdb)
	opt.MaxVariants = 8
	cache := must(t)(opt.New())
	flood(t, cache.Handler(inColor(fresh)), 60)
	if err := cache.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys := 0
	for _, key := range keysOf(t, rdb) {
		if strings.HasPrefix(key, opt.Namespace.Prefix) {
			keys++
		}
	}
	if keys < 2 || keys > 8+1+4 {
		t.Errorf("%d keys", keys)
	}
}

// keysOf returns the keys of all masters.
func keysOf(t *testing.T, rdb redis.UniversalClient) (keys []string) {
	var mu sync.Mutex
	add := func(ctx context.Context, c *redis.Client) error {
		some, err := c.Keys(ctx, "*").Result()
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, some...)
		return err
	}
	var err error
	switch c := rdb.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(t.Context(), add)
	case *redis.Client:
		err = add(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// outcomes counts events by their errors, and keeps none.
type outcomes struct {
	mu sync.Mutex
	n  map[string]int
}

func (o *outcomes) Observe(_ context.Context, e mayfly.Event) {
	if e.Err == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == nil {
		o.n = map[string]int{}
	}
	why := e.Err
	for inner := errors.Unwrap(why); inner != nil; inner = errors.Unwrap(why) {
		why = inner
	}
	o.n[why.Error()]++
}

func (o *outcomes) with(err string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n[err]
}
