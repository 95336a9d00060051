package sliding_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// The unused part of a share comes back when the process closes the limiter, or else when the share has ended. The share of a killed process does
// not come back, and is at most a 32nd of the limit.
func TestSharesComeBack(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(l *sliding.Limiter[string], rdb *redistest.Server)
		lost bool
	}{
		"closed": {func(l *sliding.Limiter[string], _ *redistest.Server) { l.Close(context.Background()) }, false},
		"idle":   {func(*sliding.Limiter[string], *redistest.Server) { time.Sleep(200 * time.Millisecond) }, false},
		"killed": {func(l *sliding.Limiter[string], srv *redistest.Server) {
			srv.FailNext("evalsha", "ERR the give-back does not arrive")
			l.Close(context.Background())
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			leased(t, func(t *testing.T, srv *redistest.Server, _ *trips, a, _ *sliding.Limiter[string]) {
				n := spend(t, a, 1003)
				out := counted(t, srv) - n
				if out < 50 || out > 100_000/32 {
					t.Errorf("%d are out in a share", out)
				}
				c.end(a, srv)
				if left := counted(t, srv) - n; c.lost && left != out || !c.lost && left != 0 {
					t.Errorf("%d were out, and %d are counted too much", out, left)
				}
				if n := spend(t, a, 10); n != 10 {
					t.Errorf("then %d of 10 were admitted", n)
				}
			})
		})
	}
}

// A deleted counter begins anew, and gets nothing back from earlier shares.
func TestAShareOfACounterThatWasDeleted(t *testing.T) {
	leased(t, func(t *testing.T, srv *redistest.Server, _ *trips, a, b *sliding.Limiter[string]) {
		spend(t, a, 1003)
		srv.FlushAll()
		n := spend(t, b, 203)
		a.Close(t.Context())
		b.Close(t.Context())
		if got := counted(t, srv); got != n {
			t.Errorf("%d are counted, where %d were admitted", got, n)
		}
	})
}

// A share whose reply was lost belongs to nobody, and comes back. The calls that were requested with it may count.
func TestAShareWhoseReplyWasLost(t *testing.T) {
	leased(t, func(t *testing.T, srv *redistest.Server, _ *trips, a, _ *sliding.Limiter[string]) {
		n, lost := spend(t, a, 1003), 0
		for lost < 2 { // more would open the breaker
			srv.DropReply("evalsha")
			var err error
			for err == nil {
				time.Sleep(100 * time.Microsecond)
				if _, err = a.Allow(t.Context(), "ada", 1); err == nil {
					n++
				}
			}
			want(t, err, mayfly.ErrUnknownOutcome)
			lost++
		}
		time.Sleep(300 * time.Millisecond)
		if got := counted(t, srv); got != n+lost {
			t.Errorf("%d are counted, where %d were admitted, and %d replies lost", got, n, lost)
		}
	})
}

// Unused calls come back once, however often the command is sent.
func TestAGiveBackThatComesTwice(t *testing.T) {
	leased(t, func(t *testing.T, srv *redistest.Server, count *trips, a, _ *sliding.Limiter[string]) {
		n := spend(t, a, 1003)
		a.Close(t.Context())
		said := count.last.Load().([]any)
		if fmt.Sprint(said[4]) != "0" {
			t.Errorf("%v asks for calls: this shows nothing", said)
		}
		for range 2 {
			want(t, srv.Client().Do(t.Context(), said...).Err(), nil)
		}
		if got := counted(t, srv); got != n {
			t.Errorf("%d are counted, where %d were admitted", got, n)
		}
	})
}

// In a strict window, unused calls come back to the part in which they were counted, not to the current one.
func TestSharesOfPartsThatWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window, part = 16 * time.Second, time.Second
		rdb := redistest.Start(t).Client()
		l := mayfly.Must(sliding.NewLimiter(calls(rdb, window), sliding.LimiterOptions{Limit: 1e6, Lease: 50 * time.Millisecond, Strict: true}))
		defer l.Close(t.Context())
		direct := mayfly.Must(sliding.NewLimiter(calls(rdb, window), sliding.LimiterOptions{Limit: 1e6, Strict: true}))
		ends := time.Now().Truncate(part).Add(2 * part)
		time.Sleep(time.Until(ends) - 110*time.Millisecond)
		n := spend(t, l, 1000)
		time.Sleep(time.Until(ends))
		used := func(n int) int {
			d, err := direct.Allow(t.Context(), "ada", n)
			want(t, err, nil)
			return 1e6 - d.Remaining
		}
		if out := used(5000) - 5000 - n; out <= 0 {
			t.Errorf("%d are out: this shows nothing", out)
		}
		time.Sleep(part / 2)
		if got := used(0); got != n+5000 {
			t.Errorf("%d are counted, where %d were admitted", got, n+5000)
		}
		time.Sleep(window)
		if got := used(0); got != 5000 {
			t.Errorf("then %d are counted, where 5000 were admitted", got)
		}
	})
}

// Processes whose leases differ, as during a deployment, do not disturb each other's shares.
func TestAShareBesideShorterOnes(t *testing.T) {
	for kind, o := range windows {
		synctest.Test(t, func(t *testing.T) {
			const limit = 1e6
			srv := redistest.Start(t)
			open := func(lease time.Duration) *sliding.Limiter[string] {
				o.Limit, o.Lease = limit, lease
				rdb := redis.NewClient(srv.Options())
				t.Cleanup(func() { rdb.Close() })
				return mayfly.Must(sliding.NewLimiter(calls(rdb, 10*time.Second), o))
			}
			time.Sleep(time.Until(time.Now().Truncate(10 * time.Second).Add(10 * time.Second)))
			long, brief, none := open(500*time.Millisecond), open(5*time.Millisecond), open(0)
			n := spend(t, long, 1003) + spend(t, brief, 203)
			brief.Close(t.Context())
			long.Close(t.Context())
			d, err := none.Allow(t.Context(), "ada", 0)
			want(t, err, nil)
			if got := limit - d.Remaining; got != n {
				t.Errorf("%s: %d are counted, where %d were admitted", kind, got, n)
			}
		})
	}
}

// Close reports what it could not give back, and another Close tries again.
func TestCloseSaysWhatItCouldNotGiveBack(t *testing.T) {
	leased(t, func(t *testing.T, srv *redistest.Server, _ *trips, a, _ *sliding.Limiter[string]) {
		n := spend(t, a, 1003)
		unused := counted(t, srv) - n
		srv.Hang()
		err := a.Close(t.Context())
		says := fmt.Sprintf(`up to %d unused calls of 1 key(s), such as "calls:ada", may stay counted, for 10s at most`, unused)
		if err == nil || !strings.Contains(err.Error(), says) || !errors.Is(err, mayfly.ErrUnknownOutcome) {
			t.Errorf("%v, want %q", err, says)
		}
		srv.Thaw()
		want(t, a.Close(t.Context()), nil)
		if got := counted(t, srv); unused == 0 || got != n {
			t.Errorf("%d are counted, where %d were admitted, and %d were unused", got, n, unused)
		}
	})
	leased(t, func(t *testing.T, srv *redistest.Server, _ *trips, a, _ *sliding.Limiter[string]) {
		spend(t, a, 1003)
		srv.FlushAll()
		_, err := srv.Client().LPush(t.Context(), "calls:ada", "somebody else's").Result()
		want(t, err, nil)
		want(t, a.Close(t.Context()), nil) // nothing of it still counts
		want(t, a.Close(t.Context()), nil)
	})
}

// Shares of more keys than Redis can serve within RedisTimeout still come back, and a closed limiter remembers no key.
func TestManyKeysComeBack(t *testing.T) {
	t.Parallel()
	leased(t, func(t *testing.T, srv *redistest.Server, count *trips, a, _ *sliding.Limiter[string]) {
		const keys = 1600
		key := func(i int) string { return strconv.Itoa(i) }
		for i := range keys {
			if d, err := a.Allow(t.Context(), key(i), 1); !d.Allowed || err != nil {
				t.Fatal(d, err)
			}
		}
		srv.Latency(200 * time.Microsecond) // of each command: 320 ms in all
		want(t, a.Close(t.Context()), nil)
		srv.Latency(0)
		for i := range keys {
			if held := srv.Client().Get(t.Context(), "calls:"+key(i)).Val(); held != "1" {
				t.Fatalf("%d: %q is counted", i, held)
			}
		}
		a.Allow(t.Context(), "new", 1)
		if n := a.Keys(); n != 0 {
			t.Errorf("%d keys are remembered", n)
		}
	})
}
