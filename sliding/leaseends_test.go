package sliding_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// leased runs test with a limiter of 100,000 calls in 10 s, in shares for 50 ms, and a second process's.
func leased(t *testing.T, test func(t *testing.T, srv *redistest.Server, count *trips, a, b *sliding.Limiter[string])) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var count trips
		open := func() *sliding.Limiter[string] {
			rdb := redis.NewClient(srv.Options())
			rdb.AddHook(&count)
			t.Cleanup(func() { rdb.Close() })
			return mayfly.Must(sliding.NewLimiter(calls(rdb, 10*time.Second), sliding.LimiterOptions{Limit: 100_000, Lease: 50 * time.Millisecond}))
		}
		a, b := open(), open()
		test(t, srv, &count, a, b)
		a.Close(context.Background())
		b.Close(context.Background())
	})
}

// spend makes n requests for one call each, ten a millisecond.
func spend(t *testing.T, l *sliding.Limiter[string], n int) (admitted int) {
	t.Helper()
	for i := range n {
		if i%10 == 0 {
			time.Sleep(time.Millisecond)
		}
		d, err := l.Allow(t.Context(), "ada", 1)
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			admitted++
		}
	}
	return admitted
}

// counted returns how many calls count in Redis.
func counted(t *testing.T, srv *redistest.Server) int {
	t.Helper()
	l := mayfly.Must(sliding.NewLimiter(calls(srv.Client(), 10*time.Second), sliding.LimiterOptions{Limit: 100_000}))
	d, err := l.Allow(t.Context(), "ada", 0)
	want(t, err, nil)
	return 100_000 - d.Remaining
}

// While Redis is away a process admits calls from its share until that is used up or ends.
func TestASharesEndWithoutRedis(t *testing.T) {
	leased(t, func(t *testing.T, srv *redistest.Server, _ *trips, a, _ *sliding.Limiter[string]) {
		spend(t, a, 1003)
		srv.Refuse(true)
		srv.KillConnections()
		begun, n := time.Now(), 0
		var err error
		for ; err == nil; n++ {
			_, err = a.Allow(t.Context(), "ada", 1)
			time.Sleep(time.Millisecond)
		}
		if n < 10 || time.Since(begun) > 300*time.Millisecond {
			t.Errorf("%d were admitted in %v", n, time.Since(begun))
		}
		srv.Refuse(false)
		time.Sleep(15 * time.Second) // go-redis goes on dialling
		if n := spend(t, a, 100); n != 100 {
			t.Errorf("then %d of 100 were admitted", n)
		}
	})
}

// When nothing is left a process refuses by itself, says when to ask again, and asks once a second.
func TestRefusedWithoutATrip(t *testing.T) {
	leased(t, func(t *testing.T, srv *redistest.Server, count *trips, a, b *sliding.Limiter[string]) {
		l := mayfly.Must(sliding.NewLimiter(calls(srv.Client(), 10*time.Second), sliding.LimiterOptions{Limit: 100_000}))
		l.Allow(t.Context(), "ada", 100_000)
		before, refused := count.Load(), 0
		for range 3000 {
			time.Sleep(time.Millisecond)
			d, err := a.Allow(t.Context(), "ada", 1)
			want(t, err, nil)
			if !d.Allowed && d.RetryAfter > 0 && d.RetryAfter <= 10*time.Second && d.Remaining == 0 && d.Limit == 100_000 {
				refused++
			}
		}
		if n := count.Load() - before; n > 8 || refused != 3000 {
			t.Errorf("%d trips, %d refused", n, refused)
		}
		time.Sleep(7 * time.Second)
		if n := spend(t, a, 100); n != 100 {
			t.Errorf("in the next window %d of 100 were admitted", n)
		}
	})
}

// A crowd that comes at once waits for few trips, and a caller that leaves does not take others' calls along.
func TestACrowdWaitsForOneShare(t *testing.T) {
	leased(t, func(t *testing.T, srv *redistest.Server, count *trips, a, _ *sliding.Limiter[string]) {
		srv.Latency(2 * time.Millisecond)
		leaver, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if d, err := a.Allow(leaver, "ada", 1); d.Allowed || !errors.Is(err, mayfly.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
				t.Error(d, err)
			}
		})
		synctest.Wait()
		for range 200 {
			all.Go(func() {
				if d, err := a.Allow(t.Context(), "ada", 1); !d.Allowed || err != nil {
					t.Error(d, err)
				}
			})
		}
		synctest.Wait()
		cancel()
		all.Wait()
		if n := count.Load(); n > 10 {
			t.Errorf("%d trips", n)
		}
		a.Close(t.Context())
		srv.Latency(0)
		if n := counted(t, srv); n != 200 {
			t.Errorf("%d are counted", n)
		}
	})
}

// Crowds of two processes use a limit, with trips under way all the time: the calls admitted are those counted in the end. Nothing is lost, and
// nothing is both given back and used.
func TestAdmittedCallsAreCounted(t *testing.T) {
	leased(t, func(t *testing.T, srv *redistest.Server, _ *trips, a, b *sliding.Limiter[string]) {
		srv.Latency(time.Millisecond)
		var admitted atomic.Int64
		var all sync.WaitGroup
		for i := range 16 {
			l := []*sliding.Limiter[string]{a, b}[i%2]
			all.Go(func() {
				for range 150 {
					n := 1 + rand.IntN(3)
					d, err := l.Allow(t.Context(), "ada", n)
					if err != nil {
						t.Error(err)
					}
					if d.Allowed {
						admitted.Add(int64(n))
					}
					time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Millisecond))))
				}
			})
		}
		all.Wait()
		a.Close(t.Context())
		b.Close(t.Context())
		if got := counted(t, srv); got != int(admitted.Load()) || got < 1000 {
			t.Errorf("%d are counted, where %d were admitted", got, admitted.Load())
		}
	})
}

// A closed limiter decides nothing by itself.
func TestAClosedLimiterAsks(t *testing.T) {
	leased(t, func(t *testing.T, srv *redistest.Server, _ *trips, a, _ *sliding.Limiter[string]) {
		spend(t, a, 503)
		mayfly.Must(sliding.NewLimiter(calls(srv.Client(), 10*time.Second), sliding.LimiterOptions{Limit: 100_000})).Allow(t.Context(), "ada", 100_000-counted(t, srv))
		for allowed := true; allowed; time.Sleep(time.Millisecond) {
			d, err := a.Allow(t.Context(), "ada", 1)
			want(t, err, nil)
			allowed = d.Allowed
		}
		want(t, a.Close(t.Context()), nil)
		srv.FlushAll()
		if d, err := a.Allow(t.Context(), "ada", 1); !d.Allowed || d.Remaining != 99_999 || err != nil {
			t.Errorf("%+v, %v", d, err)
		}
		want(t, a.Close(t.Context()), nil)
	})
}

// Limits of less than a hundred calls in the time of a lease take one trip per call.
func TestALimitTooSmallForShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var count trips
		rdb := srv.Client()
		rdb.AddHook(&count)
		l := mayfly.Must(sliding.NewLimiter(calls(rdb, time.Second), sliding.LimiterOptions{Limit: 1999, Lease: 50 * time.Millisecond}))
		before := count.Load()
		spend(t, l, 100)
		if n := count.Load() - before; n < 100 {
			t.Errorf("%d trips", n)
		}
		want(t, l.Close(t.Context()), nil)
	})
}

func TestBadLeases(t *testing.T) {
	rdb := redistest.Start(t).Client()
	for lease, says := range map[time.Duration]string{
		-time.Second:          "LimiterOptions.Lease",
		time.Microsecond:      "LimiterOptions.Lease",
		4 * time.Second:       "LimiterOptions.Lease must be at most a 20th of Namespace.TTL, 3s, got 4s",
		3*time.Second + 5*1e5: "at most a 20th",
	} {
		if _, err := sliding.NewLimiter(calls(rdb, time.Minute), sliding.LimiterOptions{Limit: 1000, Lease: lease}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", lease, err)
		}
	}
}

// A call that needs no trip allocates nothing.
func TestALeasedCallAllocatesNothing(t *testing.T) {
	l := mayfly.Must(sliding.NewLimiter(calls(redistest.Start(t).Client(), time.Hour), sliding.LimiterOptions{Limit: 1 << 30, Lease: 3 * time.Minute}))
	defer l.Close(t.Context())
	allow := func() {
		if d, err := l.Allow(t.Context(), "ada", 1); !d.Allowed || err != nil {
			t.Fatal(d, err)
		}
	}
	for range 1000 {
		allow()
	}
	if allocs := testing.AllocsPerRun(100, allow); !effort.Race && allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func BenchmarkAllow(b *testing.B) {
	l := mayfly.Must(sliding.NewLimiter(calls(redistest.Start(b).Client(), time.Hour), sliding.LimiterOptions{Limit: 1 << 30, Lease: 50 * time.Millisecond}))
	defer l.Close(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		if d, err := l.Allow(b.Context(), "ada", 1); !d.Allowed || err != nil {
			b.Fatal(d, err)
		}
	}
}

// A share ends with the window in which Redis counted it, or with the part of a strict window, however long a lease is, and however late the
// answer comes.
func TestAShareEndsWithItsWindow(t *testing.T) {
	const window = 16 * time.Second
	for kind, ends := range map[string]time.Duration{"fixed": window, "sliding": window, "strict": window / 16} {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			var count trips
			rdb := srv.Client()
			rdb.AddHook(&count)
			o := windows[kind]
			o.Limit, o.Lease = 1e6, 50*time.Millisecond
			l := mayfly.Must(sliding.NewLimiter(calls(rdb, window), o))
			defer l.Close(t.Context())
			allow := func() int64 {
				before := count.Load()
				if d, err := l.Allow(t.Context(), "ada", 1); !d.Allowed || err != nil {
					t.Fatal(d, err)
				}
				return count.Load() - before
			}
			time.Sleep(time.Until(time.Now().Truncate(window).Add(window)))
			end := time.Now().Add(ends)
			allow() // begins the fixed window
			count.late.Store(int64(2 * time.Millisecond))
			time.Sleep(time.Until(end) - 40*time.Millisecond)
			for range 100 {
				allow()
			}
			time.Sleep(time.Until(end) - 2*time.Millisecond)
			if n := allow(); n != 0 {
				t.Errorf("%s: %d trips within the window: this shows nothing", kind, n)
			}
			time.Sleep(time.Until(end) + time.Millisecond)
			if n := allow(); n != 1 {
				t.Errorf("%s: %d trips when the window had ended", kind, n)
			}
		})
	}
}
