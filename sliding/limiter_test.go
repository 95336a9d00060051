package sliding_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

func calls(rdb redis.UniversalClient, window time.Duration) mayfly.Namespace[string, int64] {
	return mayfly.Namespace[string, int64]{Name: "calls", Redis: rdb, Prefix: "calls:", TTL: window}
}

// windows are the ways to count.
var windows = map[string]sliding.LimiterOptions{
	"fixed": {RedisTimeout: patient}, "sliding": {RedisTimeout: patient, Sliding: true}, "strict": {RedisTimeout: patient, Strict: true},
}

func TestNeverMoreThanTheLimit(t *testing.T) {
	backends.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for name, o := range windows {
			t.Run(name, func(t *testing.T) {
				const limit = 100
				callers, each := effort.Times(32, 64), effort.Times(4, 10)
				ns := calls(rdb, time.Hour)
				ns.Prefix = fmt.Sprintf("calls:%s:", name)
				o.Limit = limit
				l := mayfly.Must(sliding.NewLimiter(ns, o))
				var admitted atomic.Int64
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for range each {
							d, err := l.Allow(t.Context(), "ada", 1)
							if err != nil {
								t.Error(err)
							}
							if d.Allowed {
								admitted.Add(1)
							}
						}
					})
				}
				wg.Wait()
				if admitted.Load() != limit {
					t.Errorf("%d of %d were admitted, the limit is %d", admitted.Load(), callers*each, limit)
				}
				key := ns.Prefix + "ada"
				if left := rdb.PTTL(t.Context(), key).Val(); left <= 0 || left > 2*time.Hour {
					t.Errorf("the counter ends in %v", left)
				}
			})
		}
	})
}

func TestFixedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		l := mayfly.Must(sliding.NewLimiter(calls(srv.Client(), time.Minute), sliding.LimiterOptions{Limit: 10}))
		allow := func(n int) sliding.Decision {
			t.Helper()
			d, err := l.Allow(t.Context(), "ada", n)
			if err != nil {
				t.Error(err)
			}
			return d
		}
		same := func(got, want sliding.Decision) {
			t.Helper()
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		same(allow(0), sliding.Decision{Allowed: true, Limit: 10, Remaining: 10})
		same(allow(7), sliding.Decision{Allowed: true, Limit: 10, Remaining: 3, ResetAfter: time.Minute})
		time.Sleep(20 * time.Second)
		same(allow(4), sliding.Decision{Limit: 10, Remaining: 3, ResetAfter: 40 * time.Second, RetryAfter: 40 * time.Second})
		same(allow(3), sliding.Decision{Allowed: true, Limit: 10, ResetAfter: 40 * time.Second})
		same(allow(0), sliding.Decision{Allowed: true, Limit: 10, ResetAfter: 40 * time.Second})
		time.Sleep(40*time.Second + time.Millisecond)
		same(allow(10), sliding.Decision{Allowed: true, Limit: 10, ResetAfter: time.Minute})
	})
}

// A refusal's RetryAfter is exact to the millisecond, and no stretch of a window's length admits twice the limit, or more than the limit if it is
// strict.
func TestSlidingWindow(t *testing.T) {
	t.Parallel()
	effort.Alone(t)
	t.Run("sliding", func(t *testing.T) { slide(t, sliding.LimiterOptions{Sliding: true}, 2*slideLimit-1) })
	t.Run("strict", func(t *testing.T) { slide(t, sliding.LimiterOptions{Strict: true}, slideLimit) })
}

const slideLimit = 50

// slide asks at random, and finds the most calls that a window's length admits.
func slide(t *testing.T, o sliding.LimiterOptions, atMost int) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		const limit, window = slideLimit, time.Minute
		seed := uint64(time.Now().UnixNano())
		t.Log("seed", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		o.Limit = limit
		l := mayfly.Must(sliding.NewLimiter(calls(srv.Client(), window), o))
		type admission struct {
			at time.Time
			n  int
		}
		var log []admission
		allow := func(n int) sliding.Decision {
			d, err := l.Allow(t.Context(), "ada", n)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed && n > 0 {
				log = append(log, admission{time.Now(), n})
			}
			if peek, _ := l.Allow(t.Context(), "ada", 0); peek.Remaining != d.Remaining {
				t.Errorf("%d remain, then %d", d.Remaining, peek.Remaining)
			}
			return d
		}
		rounds, refusals := effort.Times(250, 3000), 0
		for range rounds {
			n := 1 + r.IntN(12)
			if r.IntN(20) == 0 {
				n = limit
			}
			d := allow(n)
			if d.Allowed {
				time.Sleep(rand.N(4 * time.Second))
				continue
			}
			refusals++
			time.Sleep(d.RetryAfter - time.Millisecond)
			if got := allow(n); got.Allowed {
				t.Fatalf("%d calls refused %v early: %+v", n, time.Millisecond, d)
			}
			time.Sleep(time.Millisecond)
			if got := allow(n); !got.Allowed {
				t.Fatalf("%d calls were to fit in %v: %+v, then %+v", n, d.RetryAfter, d, got)
			}
		}
		most, from := 0, 0
		for i, sum := 0, 0; i < len(log); i++ {
			for sum += log[i].n; log[i].at.Sub(log[from].at) >= window; from++ {
				sum -= log[from].n
			}
			most = max(most, sum)
		}
		t.Logf("%d refusals; at most %d of %d in a window's length", refusals, most, limit)
		if refusals < rounds/8 || most > atMost {
			t.Errorf("%d refusals; %d calls in a window's length, limit %d", refusals, most, limit)
		}
		d, _ := l.Allow(t.Context(), "ada", 0)
		time.Sleep(d.ResetAfter)
		if d, _ := l.Allow(t.Context(), "ada", 0); d.Remaining != limit {
			t.Errorf("%d remain after ResetAfter", d.Remaining)
		}
	})
}

// At worst a sliding window admits nearly twice the limit in a window's length: all of it at the end of one window, and then, as that fades, all
// of it again in the next. A part y of a window admits at most 1+y times the limit. At worst it refuses the whole limit although a log of all
// calls would admit it: at the end of a window at whose start the limit was used.
func TestTheWorstOfASlidingWindow(t *testing.T) {
	t.Parallel()
	effort.Alone(t)
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		const limit, parts, part = 100, 200, 300 * time.Millisecond
		const window = parts * part
		l := mayfly.Must(sliding.NewLimiter(calls(srv.Client(), window), sliding.LimiterOptions{Limit: limit, Sliding: true}))
		most, worst := 0, 0.0                                           // in a window's length; and above 1+y
		refused := 0                                                    // at once, of the calls that a log would admit
		for first := 0; first < parts; first += effort.Times(198, 33) { // when the first calls come, in the first window
			for _, burst := range []int{limit, limit / 2} {
				user := fmt.Sprint(first, burst)
				time.Sleep(time.Until(time.Now().Truncate(window).Add(window + time.Duration(first)*part)))
				var log [3 * parts]int
				for i := first; i < len(log); i++ {
					want := limit
					if i == first {
						want = burst
					} else if i < parts-1 && burst == limit/2 {
						want = 0 // the rest comes at the end of the window
					}
					d, err := l.Allow(t.Context(), user, 0)
					if err != nil {
						t.Fatal(err)
					}
					log[i] = min(want, d.Remaining)
					if _, err := l.Allow(t.Context(), user, log[i]); err != nil {
						t.Fatal(err)
					}
					sum := 0
					for back := 0; back < parts && back <= i; back++ {
						sum += log[i-back]
						worst = max(worst, float64(sum)-limit*(1+float64(back)/parts))
					}
					most, refused = max(most, sum), max(refused, limit-sum-d.Remaining)
					time.Sleep(part)
				}
			}
		}
		t.Logf("at most %d in a window's length, %.2f over its bound; at most %d refused that a log would admit", most, worst, refused)
		if most < 2*limit-3 || most >= 2*limit || worst > 0 || refused < limit*9/10 || refused > limit {
			t.Errorf("%d in a window's length, where the limit is %d, %.2f over the bound; %d refused", most, limit, worst, refused)
		}
	})
}

func TestALostReplyIsCountedOnceAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		l := mayfly.Must(sliding.NewLimiter(calls(srv.Client(), time.Hour), sliding.LimiterOptions{Limit: 10, FailOpen: true}))
		l.Allow(t.Context(), "ada", 1)
		srv.DropReply("evalsha")
		d, err := l.Allow(t.Context(), "ada", 1)
		if !d.Allowed || !errors.Is(err, mayfly.ErrUnknownOutcome) {
			t.Errorf("got %+v, %v", d, err)
		}
		if d, err := l.Allow(t.Context(), "ada", 0); d.Remaining != 8 || err != nil {
			t.Errorf("got %+v, %v", d, err)
		}
	})
}

func TestMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var events []mayfly.Event
		ns := calls(srv.Client(), time.Minute)
		ns.Observer = mayfly.ObserverFunc(func(_ context.Context, e mayfly.Event) { events = append(events, e) })
		served := 0
		handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })
		byHeader := func(r *http.Request) (string, bool) { return r.Header.Get("Account"), r.Header.Get("Account") != "" }
		get := func(o sliding.LimiterOptions, account string) *http.Response {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
			r.Header.Set("Account", account)
			mayfly.Must(sliding.NewLimiter(ns, o)).Middleware(byHeader)(handler).ServeHTTP(w, r)
			return w.Result()
		}
		two := sliding.LimiterOptions{Limit: 2}
		for i := range 2 {
			got := get(two, "ada")
			if got.StatusCode != 200 || got.Header.Get("RateLimit-Limit") != "2" || got.Header.Get("RateLimit-Remaining") != strconv.Itoa(1-i) || got.Header.Get("RateLimit-Reset") != "60" {
				t.Errorf("%d: %v", got.StatusCode, got.Header)
			}
		}
		if got := get(two, "ada"); got.StatusCode != 429 || got.Header.Get("Retry-After") != "60" || served != 2 {
			t.Errorf("%d: %v, served %d", got.StatusCode, got.Header, served)
		}
		if got := get(two, ""); got.StatusCode != 200 || got.Header.Get("RateLimit-Limit") != "" || served != 3 {
			t.Errorf("not limited: %d: %v, served %d", got.StatusCode, got.Header, served)
		}
		if n := len(events); n != 3 || events[1].Outcome != mayfly.OutcomeOK || events[2].Outcome != mayfly.OutcomeRefused {
			t.Errorf("%v", events)
		}
		srv.Refuse(true)
		srv.KillConnections()
		if got := get(two, "ada"); got.StatusCode != 503 || served != 3 {
			t.Errorf("closed: %d, served %d", got.StatusCode, served)
		}
		two.FailOpen = true
		if got := get(two, "ada"); got.StatusCode != 200 || served != 4 {
			t.Errorf("open: %d, served %d", got.StatusCode, served)
		}
		time.Sleep(10 * time.Second) // go-redis goes on dialling for callers who left
	})
}

func TestBadLimits(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	for limit, says := range map[int]string{0: "Limit must be", -1: "got -1", 1 << 31: "2147483647"} {
		if _, err := sliding.NewLimiter(calls(rdb, time.Minute), sliding.LimiterOptions{Limit: limit}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%d: %v", limit, err)
		}
	}
	if _, err := sliding.NewLimiter(calls(rdb, 0), sliding.LimiterOptions{Limit: 1}); err == nil || !strings.Contains(err.Error(), "Namespace.TTL") {
		t.Errorf("no window: %v", err)
	}
	if _, err := sliding.NewLimiter(calls(rdb, 10*time.Millisecond), sliding.LimiterOptions{Limit: 1, Sliding: true}); err == nil || !strings.Contains(err.Error(), "Namespace.TTL must be at least 1s for a window that slides, got 10ms") {
		t.Errorf("a short window that slides: %v", err)
	}
	if _, err := sliding.NewLimiter(calls(rdb, 10*time.Millisecond), sliding.LimiterOptions{Limit: 1}); err != nil {
		t.Errorf("a short window: %v", err)
	}
	if _, err := sliding.NewLimiter(calls(rdb, time.Minute), sliding.LimiterOptions{Limit: 1, Sliding: true, Strict: true}); err == nil || !strings.Contains(err.Error(), "set one") {
		t.Errorf("two ways at once: %v", err)
	}
	for field, set := range map[string]func(ns *mayfly.Namespace[string, int64]){
		"Plain": func(ns *mayfly.Namespace[string, int64]) { ns.Plain = true },
		"Codec": func(ns *mayfly.Namespace[string, int64]) { ns.Codec = mayfly.JSON[int64]{} },
		"Clone": func(ns *mayfly.Namespace[string, int64]) { ns.Clone = func(n int64) int64 { return n } },
		"Cost":  func(ns *mayfly.Namespace[string, int64]) { ns.Cost = func(int64) int { return 8 } },
	} {
		ns := calls(rdb, time.Minute)
		set(&ns)
		if _, err := sliding.NewLimiter(ns, sliding.LimiterOptions{Limit: 1}); err == nil || !strings.Contains(err.Error(), "Namespace."+field+" must be") {
			t.Errorf("%s: %v", field, err)
		}
	}
	l := mayfly.Must(sliding.NewLimiter(calls(rdb, time.Minute), sliding.LimiterOptions{Limit: 10, FailOpen: true}))
	for _, n := range []int{-1, 11} {
		if d, err := l.Allow(t.Context(), "ada", n); err == nil || d.Allowed || !strings.Contains(err.Error(), "the limit is 10") {
			t.Errorf("%d: %+v, %v", n, d, err)
		}
	}
}

// A missing argument is noticed when the handler is mounted, not at the first request.
func TestMiddlewareNil(t *testing.T) {
	l := mayfly.Must(sliding.NewLimiter(calls(redistest.Start(t).Client(), time.Minute), sliding.LimiterOptions{Limit: 2}))
	expect.Panic(t, "sliding: Middleware got a nil key", func() { l.Middleware(nil) })
	everybody := l.Middleware(func(*http.Request) (string, bool) { return "all", true })
	for _, next := range []http.Handler{nil, http.HandlerFunc(nil)} {
		expect.Panic(t, "sliding: Middleware got a nil handler", func() { everybody(next) })
	}
}

// After a SCRIPT FLUSH a crowd sends each script's text once, not once per caller.
func TestACrowdAfterAScriptFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		o := srv.Options()
		o.PoolSize = 100
		rdb := redis.NewClient(o)
		defer rdb.Close()
		l := mayfly.Must(sliding.NewLimiter(calls(rdb, time.Hour), sliding.LimiterOptions{Limit: 1000}))
		s := mayfly.Must(sliding.New(namespace(rdb), sliding.Options{MaxAge: time.Hour}))
		const callers = 100
		var keys []string
		for i := range callers {
			keys = append(keys, strconv.Itoa(i))
			want(t, s.Create(t.Context(), keys[i], cart{}), nil)
		}
		for what, crowd := range map[string]func(t *testing.T){
			"Allow": func(t *testing.T) {
				srv.Latency(5 * time.Millisecond) // of each command
				defer srv.Latency(0)
				var all sync.WaitGroup
				for range callers {
					all.Go(func() {
						if d, err := l.Allow(t.Context(), "ada", 1); !d.Allowed || err != nil {
							t.Error(d, err)
						}
					})
				}
				all.Wait()
				if d, _ := l.Allow(t.Context(), "ada", 0); d.Remaining != 1000-callers {
					t.Errorf("%d remain", d.Remaining)
				}
			},
			"TouchMany": func(t *testing.T) {
				alive, err := s.TouchMany(t.Context(), keys...)
				want(t, err, nil)
				for _, key := range keys {
					if !alive[key] {
						t.Errorf("%s is not alive", key)
					}
				}
			},
		} {
			want(t, rdb.ScriptFlush(t.Context()).Err(), nil)
			srv.ClearLog()
			crowd(t)
			n := map[string]int{}
			for _, line := range srv.Log() {
				word, _, _ := strings.Cut(line, " ")
				n[strings.ToLower(word)]++
			}
			if n["eval"] != 1 || n["evalsha"] > 2*callers {
				t.Errorf("%s: %d were sent whole, %d by name", what, n["eval"], n["evalsha"])
			}
		}
	})
}
