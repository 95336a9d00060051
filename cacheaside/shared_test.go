package cacheaside_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// greedy is a codec that takes the buffer at its word: it decodes in place, and its values are views of it.
type greedy struct{}

func (greedy) Append(dst, v []byte) ([]byte, error) {
	return append(dst, inverted(bytes.Clone(v))...), nil
}
func (greedy) Decode(src []byte) ([]byte, error) { return inverted(src), nil }
func (greedy) Format() string                    { return "greedy" }

func inverted(b []byte) []byte {
	for i := range b {
		b[i] ^= 0xff
	}
	return b
}

// What a caller does to its value changes nothing for anybody else: neither what the loader is shown nor what is stored if that is still right.
func TestACallerMayChangeWhatCameFromRedis(t *testing.T) {
	stale := cacheaside.Options{StaleWhile: time.Hour}
	one := func(ctx context.Context, c *cacheaside.Cache[int, []byte]) []byte { v, _ := c.Get(ctx, 7); return v }
	for name, how := range map[string]struct {
		plain bool
		codec mayfly.Codec[[]byte]
		opt   cacheaside.Options
		batch bool
		get   func(ctx context.Context, c *cacheaside.Cache[int, []byte]) []byte
	}{
		"stale":             {opt: stale},
		"stale, in place":   {opt: stale, codec: greedy{}},
		"stale, compressed": {opt: cacheaside.Options{StaleWhile: time.Hour, Compress: 1}},
		"stale, of many": {opt: stale, batch: true, get: func(ctx context.Context, c *cacheaside.Cache[int, []byte]) []byte {
			m, _ := c.GetMany(ctx, []int{7})
			return m[7]
		}},
		"early":        {opt: cacheaside.Options{Early: earlyrefresh.Linear(60)}},
		"early, plain": {opt: cacheaside.Options{Early: always{}}, plain: true},
		"fallback":     {opt: cacheaside.Options{StaleIfError: time.Hour, LoadSoftTimeout: time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbles(t, func(t *testing.T, rdb *redis.Client) {
				right := bytes.Repeat([]byte("right "), 20)
				var shown [][]byte
				var mu sync.Mutex
				answer := func(previous *cacheaside.Entry[[]byte]) cacheaside.Loaded[[]byte] {
					if previous == nil {
						return cacheaside.Loaded[[]byte]{Value: bytes.Clone(right)}
					}
					time.Sleep(time.Second) // in which the caller changes its value
					mu.Lock()
					defer mu.Unlock()
					shown = append(shown, bytes.Clone(previous.Value))
					copy(previous.Value, "wrong") // the loader's own
					return cacheaside.Loaded[[]byte]{NotModified: true}
				}
				ns := mayfly.Namespace[int, []byte]{Redis: rdb, Prefix: "v:", TTL: time.Minute, Plain: how.plain, Codec: how.codec}
				c, err := cacheaside.NewEntry(ns, func(_ context.Context, _ int, previous *cacheaside.Entry[[]byte]) (cacheaside.Loaded[[]byte], error) {
					return answer(previous), nil
				}, how.opt)
				if how.batch {
					c, err = cacheaside.NewBatchEntry(ns, func(_ context.Context, _ []int, previous map[int]cacheaside.Entry[[]byte]) (map[int]cacheaside.Loaded[[]byte], error) {
						if was, ok := previous[7]; ok {
							return map[int]cacheaside.Loaded[[]byte]{7: answer(&was)}, nil
						}
						return map[int]cacheaside.Loaded[[]byte]{7: answer(nil)}, nil
					}, how.opt)
				}
				must[int, []byte](t)(c, err)
				get := how.get
				if get == nil {
					get = one
				}
				for i := range 5 {
					mine := get(t.Context(), c)
					if !bytes.Equal(mine, right) {
						t.Errorf("Get %d: %q", i, mine)
					}
					copy(mine, "wrong")
					if how.opt.Early != nil {
						time.Sleep(5 * time.Second)
					} else {
						time.Sleep(70 * time.Second)
					}
				}
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if len(shown) < 3 {
					t.Errorf("%d loads with a previous value", len(shown))
				}
				for i, was := range shown {
					if !bytes.Equal(was, right) {
						t.Errorf("load %d was shown %q", i, was)
					}
				}
			})
		})
	}
}

// lastHalf renews in the second half of a life.
type lastHalf struct{}

func (lastHalf) Due(ttl, left, _ time.Duration, _ float64) bool { return left < ttl/2 }

// The renewal of a local copy looks in Redis whether that is still there, and the loader is shown what is.
func TestTheRenewalOfACopyIsShownWhatRedisHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ns := mayfly.Namespace[int, []byte]{Redis: redistest.Start(t).Client(), Prefix: "v:", TTL: time.Minute, Codec: greedy{}, Clone: bytes.Clone}
		withLocal(t, &ns, mayfly.LocalOptions{})
		shown := 0
		c := must[int, []byte](t)(cacheaside.NewEntry(ns, func(_ context.Context, _ int, previous *cacheaside.Entry[[]byte]) (cacheaside.Loaded[[]byte], error) {
			if previous == nil {
				return cacheaside.Loaded[[]byte]{Value: []byte("right")}, nil
			}
			if shown++; string(previous.Value) != "right" {
				t.Errorf("the loader was shown %q", previous.Value)
			}
			return cacheaside.Loaded[[]byte]{NotModified: true}, nil
		}, cacheaside.Options{Early: lastHalf{}}))
		for range 20 {
			mine, err := c.Get(t.Context(), 7)
			if string(mine) != "right" || err != nil {
				t.Errorf("%q, %v", mine, err)
			}
			copy(mine, "wrong")
			time.Sleep(10 * time.Second)
		}
		if s := c.Stats(); shown < 3 || s.Local < 5 || s.Loads != uint64(shown)+1 {
			t.Errorf("the loader was shown %d values; %+v", shown, s)
		}
	})
}

// With Clone each of those who wait for one load gets a value of its own; one that waits alone gets it as it is.
func TestThoseWhoShareALoadGetCopies(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var clones atomic.Int32
		load := func(context.Context, int) (*user, error) {
			time.Sleep(time.Second)
			return &user{Name: "right"}, nil
		}
		ns := mayfly.Namespace[int, *user]{Redis: rdb, Prefix: "v:", TTL: time.Minute, Clone: func(u *user) *user {
			clones.Add(1)
			return &user{Name: u.Name}
		}}
		c := must[int, *user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
		get := func() (*user, error) { return c.Get(t.Context(), 7) }
		var wg sync.WaitGroup
		for _, get := range []func() (*user, error){
			get, get,
			func() (*user, error) { m, err := c.GetMany(t.Context(), []int{7}); return m[7], err },
			func() (*user, error) {
				return c.Fetch(t.Context(), 7, func(ctx context.Context) (*user, error) { return load(ctx, 7) })
			},
		} {
			wg.Go(func() {
				u, err := get()
				if err != nil || u.Name != "right" {
					t.Errorf("%+v, %v", u, err)
					return
				}
				u.Name = "changed"
			})
		}
		wg.Wait()
		if n := clones.Swap(0); n != 4 {
			t.Errorf("%d clones for four callers", n)
		}
		if u, err := c.Get(t.Context(), 8); clones.Load() != 0 || err != nil || u.Name != "right" {
			t.Errorf("one that waits alone: %d clones, %+v, %v", clones.Load(), u, err)
		}
	})
}

// A value that can be decoded only once is not stored again: the renewal fails, and says why.
func TestAPreviousValueThatCannotBeDecodedAgain(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var events expect.Events
		loads := 0
		ns := mayfly.Namespace[int, int]{Redis: rdb, Prefix: "v:", TTL: time.Minute, Codec: &fickle{}, Observer: &events}
		c := must[int, int](t)(cacheaside.NewEntry(ns, func(_ context.Context, _ int, previous *cacheaside.Entry[int]) (cacheaside.Loaded[int], error) {
			loads++
			if previous != nil {
				t.Errorf("the loader was shown %v", previous.Value)
			}
			return cacheaside.Loaded[int]{Value: 1, NotModified: loads > 1}, nil
		}, cacheaside.Options{StaleWhile: time.Hour}))
		if v := expect.Value(c.Get(t.Context(), 7))(t); v != 1 {
			t.Error(v)
		}
		time.Sleep(61 * time.Second)
		if v := expect.Value(c.Get(t.Context(), 7))(t); v != 1 {
			t.Error(v)
		}
		synctest.Wait()
		if n := events.Count(mayfly.KindRefresh, mayfly.OutcomeFailed); n != 1 {
			t.Errorf("%d renewals failed: %v", n, events.All())
		}
	})
}

// fickle decodes once.
type fickle struct {
	mayfly.JSON[int]
	decoded atomic.Bool
}

func (f *fickle) Decode(src []byte) (int, error) {
	if f.decoded.Swap(true) {
		return 0, errors.New("decoded already")
	}
	return f.JSON.Decode(src)
}

// For the race detector: those that wait in the queue are put in order while somebody sees who has left.
func TestAListIsPutInOrderWhileCallersLeave(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		c := must[int, int](t)(cacheaside.New(mayfly.Namespace[int, int]{Redis: rdb, Prefix: "v:", TTL: time.Minute}, func(_ context.Context, key int) (int, error) {
			time.Sleep(time.Second)
			return key, nil
		}, cacheaside.Options{LoadLimit: 1}))
		var wg sync.WaitGroup
		defer wg.Wait()
		get := func(key int) { wg.Go(func() { expect.Value(c.Get(t.Context(), key))(t) }) }
		get(100) // has the one permit
		synctest.Wait()
		ctx, leave := context.WithCancel(t.Context())
		wg.Go(func() { c.GetMany(ctx, []int{0, 1, 2, 3, 4, 5, 6, 7}) })
		synctest.Wait()
		for key := 5; key < 8; key++ {
			get(key)
		}
		synctest.Wait()
		leave()
	})
}
