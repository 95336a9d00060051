package ttlaudit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/ttlaudit"
)

// fill writes keys of known patterns: so many users with a TTL of an hour, every third without, sessions, and a few others.
func fill(t testing.TB, rdb redis.UniversalClient, users int) {
	t.Helper()
	ctx := t.Context()
	for i := 0; i < users; i += 1000 {
		pipe := rdb.Pipeline()
		for j := i; j < min(i+1000, users); j++ {
			ttl := time.Hour
			if j%3 == 0 {
				ttl = 0
			}
			pipe.Set(ctx, fmt.Sprintf("cache:user:%d", j), "value", ttl)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
	}
	pipe := rdb.Pipeline()
	for i := range 40 {
		pipe.Set(ctx, "session:"+name(i), strings.Repeat("x", 10*i), 90*24*time.Hour)
	}
	for i := range 5 {
		pipe.RPush(ctx, fmt.Sprintf("queue:%d", i), "a", "b")
	}
	pipe.SAdd(ctx, "config", "a")
	pipe.Set(ctx, "soon", "v", 30*time.Second)
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

// filled is what fill wrote, as patterns with keys, those without TTL, and those with too long a one.
func filled(users int) map[string][3]int64 {
	all := map[string][3]int64{"session:*": {40, 0, 40}, "queue:*": {5, 5, 0}, "config": {1, 1, 0}, "soon": {1, 0, 0}}
	if users > 0 {
		all["cache:user:*"] = [3]int64{int64(users), int64((users + 2) / 3), 0}
	}
	return all
}

func counted(r *ttlaudit.Report) map[string][3]int64 {
	all := map[string][3]int64{}
	for _, p := range r.Patterns {
		all[p.Name] = [3]int64{p.Keys, p.NoTTL, p.TooLong}
	}
	return all
}

func TestTotalsAreExact(t *testing.T) {
	backends.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		const users = 5000
		fill(t, rdb, users)
		r, err := ttlaudit.Run(t.Context(), rdb, ttlaudit.Options{MaxRate: -1})
		if err != nil {
			t.Fatal(err)
		}
		if got := counted(r); !maps.Equal(got, filled(users)) {
			t.Errorf("%v", got)
		}
		if r.Keys != users+47 || r.NoTTL != 1667+6 || r.TooLong != 40 || !r.Complete || r.Vanished != 0 || r.Estimated.Keys != 0 || r.Resharded {
			t.Errorf("%+v", r)
		}
		if want := map[string]int64{"string": users + 41, "list": 5, "set": 1}; !maps.Equal(r.Types, want) {
			t.Errorf("%v", r.Types)
		}
		left := map[time.Duration]int64{}
		for _, b := range r.TTLs {
			if b.Keys > 0 {
				left[b.UpTo] = b.Keys
			}
		}
		if want := map[time.Duration]int64{time.Minute: 1, time.Hour: users - 1667, 365 * 24 * time.Hour: 40}; !maps.Equal(left, want) {
			t.Errorf("%v", left)
		}
		pipe, truth := rdb.Pipeline(), int64(0)
		for i := 0; i < users; i += 3 {
			pipe.MemoryUsage(t.Context(), fmt.Sprintf("cache:user:%d", i))
		}
		cmds, err := pipe.Exec(t.Context())
		for _, cmd := range cmds {
			truth += cmd.(*redis.IntCmd).Val()
		}
		p := r.Patterns[0]
		slack := truth / 50 // 1 of 20 is beside its interval; none is that far
		if err != nil || p.Example != "cache:user:0" || p.NoTTLBytes.Low > truth+slack || p.NoTTLBytes.High < truth-slack {
			t.Errorf("%+v, %+v, not %d; %v", p, p.NoTTLBytes, truth, err)
		}
		if len(r.Largest) != 10 || !sort.SliceIsSorted(r.Largest, func(i, j int) bool { return r.Largest[i].Bytes > r.Largest[j].Bytes }) {
			t.Errorf("%v", r.Largest)
		}
		r, err = ttlaudit.Run(t.Context(), rdb, ttlaudit.Options{MaxRate: -1, Match: "session:*", Sizes: -1})
		if err != nil || r.Keys != 40 || r.Bytes != nil {
			t.Errorf("with Match: %+v, %v", r, err)
		}
	}, backends.Miniredis) // which has no TTL of months and no MEMORY USAGE as Redis has
}

// meddling is a hook that does something after each SCAN, and may change what it returned.
type meddling struct {
	redis.Hook
	after func(cmd *redis.ScanCmd)
}

func (m meddling) DialHook(next redis.DialHook) redis.DialHook { return next }
func (m meddling) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (m meddling) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if scan, ok := cmd.(*redis.ScanCmd); ok && err == nil {
			m.after(scan)
		}
		return err
	}
}

func TestKeysVanishBetweenScanAndPTTL(t *testing.T) {
	srv := redistest.Start(t)
	fill(t, srv.Client(), 1000)
	rdb := redis.NewClient(srv.Options())
	defer rdb.Close()
	rdb.AddHook(meddling{after: func(cmd *redis.ScanCmd) {
		keys, _ := cmd.Val()
		srv.Client().Del(t.Context(), keys[:len(keys)/2]...)
	}})
	r, err := ttlaudit.Run(t.Context(), rdb, ttlaudit.Options{MaxRate: -1})
	if err != nil || r.Vanished < 400 || r.Keys+r.Vanished != 1047 || !r.Complete {
		t.Errorf("%d keys, %d vanished, %v", r.Keys, r.Vanished, err)
	}
	if left := srv.Client().DBSize(t.Context()).Val(); left != r.Keys {
		t.Errorf("%d keys were counted, %d are there", r.Keys, left)
	}
}

// SCAN may return a key twice: it is counted once.
func TestKeysComeTwice(t *testing.T) {
	srv := redistest.Start(t)
	fill(t, srv.Client(), 5000)
	rdb := redis.NewClient(srv.Options())
	defer rdb.Close()
	var before []string
	rdb.AddHook(meddling{after: func(cmd *redis.ScanCmd) {
		keys, next := cmd.Val()
		cmd.SetVal(slices.Concat(keys, before), next)
		before = slices.Clone(keys)
	}})
	r, err := ttlaudit.Run(t.Context(), rdb, ttlaudit.Options{MaxRate: -1})
	if err != nil || !maps.Equal(counted(r), filled(5000)) {
		t.Errorf("%v, %v", counted(r), err)
	}
}

// without times, for comparison
func timeless(r *ttlaudit.Report) ttlaudit.Report {
	s := *r
	s.Began, s.Took = time.Time{}, 0
	return s
}

func TestResumed(t *testing.T) {
	for _, b := range append(backends.Only("redistest", "redis 8", "valkey"), backends.DoubleCluster) {
		t.Run(b.Name, func(t *testing.T) {
			rdb := b.Open(t)
			fill(t, rdb, 8000)
			once, err := ttlaudit.Run(t.Context(), rdb, ttlaudit.Options{MaxRate: -1})
			if err != nil {
				t.Fatal(err)
			}
			var state []byte
			var r *ttlaudit.Report
			parts := 0
			for pages := 0; ; parts++ {
				ctx, cancel := context.WithCancel(t.Context())
				r, err = ttlaudit.Run(ctx, rdb, ttlaudit.Options{
					MaxRate: -1, Resume: state,
					Checkpoint: func(s []byte) error { state = s; return nil },
					Progress: func(ttlaudit.Progress) {
						if pages++; pages%3 == 0 {
							cancel()
						}
					},
				})
				cancel()
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) || r.Complete || r.Keys == 0 {
					t.Fatalf("%+v, %v", r, err)
				}
			}
			if parts < 2 {
				t.Errorf("%d parts", parts)
			}
			a, b := timeless(once), timeless(r)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("at once\n%.900v\nin parts\n%.900v", a, b)
			}
		})
	}
}

func TestWhatCannotBeResumed(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client()
	fill(t, rdb, 4000)
	var state []byte
	ctx, cancel := context.WithCancel(t.Context())
	save := func(s []byte) error { state = s; return nil }
	ttlaudit.Run(ctx, rdb, ttlaudit.Options{MaxRate: -1, Checkpoint: save, Progress: func(ttlaudit.Progress) { cancel() }})
	cancel()
	other := redistest.Start(t)
	restarted := redis.NewClient(srv.Options()) // another server at the same address
	restarted.Options().Dialer = other.Options().Dialer
	defer restarted.Close()
	for says, test := range map[string]struct {
		rdb redis.UniversalClient
		o   ttlaudit.Options
	}{
		"not the state of an audit": {rdb, ttlaudit.Options{Resume: []byte("state")}},
		"Not the state of an audit": {rdb, ttlaudit.Options{Resume: []byte{}}},
		"with other options":        {rdb, ttlaudit.Options{Resume: state, Match: "a*"}},
		"was restarted since":       {restarted, ttlaudit.Options{Resume: state}},
	} {
		if r, err := ttlaudit.Run(t.Context(), test.rdb, test.o); r != nil || err == nil || !strings.Contains(err.Error(), strings.ToLower(says)) {
			t.Errorf("%s: %v, %v", says, r, err)
		}
	}
	full := errors.New("disk full")
	r, err := ttlaudit.Run(t.Context(), rdb, ttlaudit.Options{Keys: 1, Checkpoint: func([]byte) error { return full }})
	if err != nil {
		t.Errorf("nothing was to be saved: %+v, %v", r, err)
	}
}

// An audit looks at no more keys a second than it may, in small pages; how long it took is reported.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		fill(t, srv.Client(), 3000)
		begun := time.Now()
		pages, last := 0, int64(0)
		r, err := ttlaudit.Run(t.Context(), srv.Client(), ttlaudit.Options{MaxRate: 1000, Progress: func(p ttlaudit.Progress) {
			if pages++; p.Keys-last > 20 || p.Of != 3047 || p.Servers != 1 {
				t.Errorf("%d keys in a page; %+v", p.Keys-last, p)
			}
			last = p.Keys
		}})
		took := time.Since(begun)
		if err != nil || took < 3*time.Second || took > 6*time.Second || r.Took != took || pages < 150 {
			t.Errorf("%v, %v, %d pages, %v", took, r.Took, pages, err)
		}
	})
}

// A sample finds intervals that hold the truth.
func TestSample(t *testing.T) {
	for _, b := range append(backends.Only("redistest", "redis 8"), backends.DoubleCluster) {
		t.Run(b.Name, func(t *testing.T) {
			rdb := b.Open(t)
			fill(t, rdb, 20_000)
			r, err := ttlaudit.Run(t.Context(), rdb, ttlaudit.Options{MaxRate: -1, Keys: 3000})
			if err != nil || !r.Complete || r.Keys < 3000 || r.Keys > 6500 || r.Estimated.Keys == 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			truth := int64(6667 + 6)
			e := r.Estimated
			slack := (e.NoTTL.High - e.NoTTL.Low) // 1 of 20 is beside the interval; none is that far
			if e.Keys != 20_047 || truth < e.NoTTL.Low-slack || truth > e.NoTTL.High+slack || e.NoTTL.Exact() || slack > 2000 {
				t.Errorf("%+v", e)
			}
		})
	}
}

func TestHashFields(t *testing.T) {
	for _, b := range backends.Only("redistest", "redis 8", "redis 7.0") {
		t.Run(b.Name, func(t *testing.T) {
			rdb, ctx := b.Open(t), t.Context()
			for i := range 3 {
				rdb.HSet(ctx, fmt.Sprint("h:", i), "a", 1, "b", 2)
			}
			rdb.HExpire(ctx, "h:1", time.Hour, "a")
			rdb.HExpire(ctx, "h:2", time.Hour, "a", "b")
			r, err := ttlaudit.Run(ctx, rdb, ttlaudit.Options{})
			if err != nil || r.NoTTL != 3 {
				t.Fatal(r, err)
			}
			want := ttlaudit.Report{}.Hashes
			want.Looked, want.Fields, want.WithTTL, want.EndByFields = 3, 6, 3, 1
			if b.Name == "redis 7.0" {
				want = ttlaudit.Report{}.Hashes
				want.Unknown = r.Hashes.Unknown
				if !strings.Contains(r.Hashes.Unknown, "unknown command") {
					t.Error("nothing says that fields are not known")
				}
			}
			if r.Hashes != want {
				t.Errorf("%+v", r.Hashes)
			}
		})
	}
}

func TestBadOptions(t *testing.T) {
	for says, o := range map[string]ttlaudit.Options{
		"Keys must not":    {Keys: -1},
		"Keys cannot":      {Keys: 1, Match: "a"},
		"Sizes must":       {Sizes: 1.5},
		"TooLong must":     {TooLong: -1},
		"Largest must not": {Largest: -1},
	} {
		if r, err := ttlaudit.Run(t.Context(), nil, o); r != nil || err == nil || !strings.Contains(err.Error(), "Options."+says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := ttlaudit.Run(t.Context(), nil, ttlaudit.Options{}); err == nil || !strings.Contains(err.Error(), "the client is nil") {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	srv := redistest.Start(t)
	fill(t, srv.Client(), 3000)
	srv.Client().Set(t.Context(), "evil:\x1b[2J", "v", 0)
	r, err := ttlaudit.Run(t.Context(), srv.Client(), ttlaudit.Options{MaxRate: -1})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3,048 keys, 1,007 without TTL (33.0 %), 40 with more than 28d",
		"cache:user:*            3,000          1,000  ██████████",
		"queue:*                     5              5  ▏         ",
		`"evil:\x1b[2J"`,
		"\nto 1h                 2,000  ██████████\n",
		"\nno end                1,007  █████\n",
		"TYPES: 5 list, 1 set, 3,042 string",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the text lacks %q", want)
		}
	}
	if t.Failed() || strings.Contains(b.String(), "PARTIAL") || strings.ContainsRune(b.String(), 0x1b) {
		t.Errorf("%s", &b)
	}
}

// With random keys, sizes and names, the patterns' figures add up to the totals.
func TestFiguresAddUp(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	srv := redistest.Start(t)
	rdb, ctx := srv.Client(), t.Context()
	pipe := rdb.Pipeline()
	for range 4000 {
		key := fmt.Sprintf("%s:%s:%d", name(r.IntN(40)), name(r.IntN(300)), r.IntN(50))
		pipe.Set(ctx, key, strings.Repeat("x", r.IntN(200)), time.Duration(r.IntN(2))*time.Hour)
	}
	pipe.Exec(ctx)
	rep, err := ttlaudit.Run(ctx, rdb, ttlaudit.Options{MaxRate: -1, Sizes: 1})
	if err != nil {
		t.Fatal(err)
	}
	var keys, none, bytes int64
	for _, p := range rep.Patterns {
		keys, none, bytes = keys+p.Keys, none+p.NoTTL, bytes+p.Bytes.Value
		if !p.Bytes.Exact() {
			t.Errorf("all sizes were asked for, %+v", p.Bytes)
		}
	}
	if keys != rep.Keys || none != rep.NoTTL || bytes != rep.Bytes.Value || keys != rdb.DBSize(ctx).Val() {
		t.Errorf("%d keys, %d without TTL, %d bytes; %+v", keys, none, bytes, rep)
	}
}

func TestTheLargestAreKept(t *testing.T) {
	keys, bytes := []string{"d", "a", "f", "b", "e", "c"}, []int64{20, 50, 10, 40, 20, 30}
	for most, want := range [][]string{1: {"a"}, 3: {"a", "b", "c"}, 4: {"a", "b", "c", "d"}, 5: {"a", "b", "c", "d", "e"}, 9: {"a", "b", "c", "d", "e", "f"}} {
		if want != nil || most == 0 {
			if got := ttlaudit.Largest(most, keys, bytes); !slices.Equal(got, want) {
				t.Errorf("the largest %d: %v, want %v", most, got, want)
			}
		}
	}
}
