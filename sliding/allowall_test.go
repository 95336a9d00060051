package sliding_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
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
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// limiterOf returns a limiter with a prefix of its own.
func limiterOf(rdb redis.UniversalClient, prefix string, o sliding.LimiterOptions) *sliding.Limiter[string] {
	ns := calls(rdb, time.Hour)
	ns.Prefix = prefix + ":"
	return mayfly.Must(sliding.NewLimiter(ns, o))
}

// All limits admit their calls, or none counts them, whatever kinds of limits they are.
func TestAllowAll(t *testing.T) {
	backends.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		fixed := limiterOf(rdb, "fixed", sliding.LimiterOptions{Limit: 10, RedisTimeout: patient})
		slides := limiterOf(rdb, "slides", sliding.LimiterOptions{Limit: 5, RedisTimeout: patient, Sliding: true})
		strict := limiterOf(rdb, "strict", sliding.LimiterOptions{Limit: 3, RedisTimeout: patient, Strict: true})
		ask := func(a, b, c int) (bool, []sliding.Decision) {
			t.Helper()
			allowed, each, err := sliding.AllowAll(t.Context(), fixed.Ask("{ada}", a), slides.Ask("{ada}", b), strict.Ask("{ada}", c))
			if err != nil {
				t.Fatal(err)
			}
			return allowed, each
		}
		left := func(fix, slide, strict int) {
			t.Helper()
			if ok, d := ask(0, 0, 0); !ok || d[0].Remaining != fix || d[1].Remaining != slide || d[2].Remaining != strict {
				t.Errorf("%v: %+v", ok, d)
			}
		}
		left(10, 5, 3)
		if ok, d := ask(2, 2, 2); !ok || d[0].Remaining != 8 || d[1].Remaining != 3 || d[2].Remaining != 1 || d[0].Limit != 10 {
			t.Errorf("%v: %+v", ok, d)
		}
		if ok, d := ask(2, 2, 2); ok || !d[0].Allowed || !d[1].Allowed || d[2].Allowed || d[2].RetryAfter <= 0 || d[0].RetryAfter != 0 {
			t.Errorf("one denies: %v: %+v", ok, d)
		}
		left(8, 3, 1)
		if d, err := slides.Allow(t.Context(), "{ada}", 0); d.Remaining != 3 || err != nil {
			t.Errorf("%+v, %v", d, err)
		}
		want(t, rdb.Set(t.Context(), "slides:{bob}", "a text", time.Hour).Err(), nil)
		ok, d, err := sliding.AllowAll(t.Context(), fixed.Ask("{bob}", 1), slides.Ask("{bob}", 1))
		if ok || d[0].Allowed || !errors.Is(err, mayfly.ErrForeign) || !strings.Contains(err.Error(), "slides:{bob}") {
			t.Errorf("%v, %+v, %v", ok, d, err)
		}
		if d, _ := fixed.Allow(t.Context(), "{bob}", 0); d.Remaining != 10 {
			t.Errorf("it was counted beside a foreign key: %+v", d)
		}
	})
}

func TestBadAllowAll(t *testing.T) {
	rdb, other := redistest.Start(t).Client(), redistest.Start(t).Client()
	cluster := redistest.StartCluster(t, 3).Client()
	o := sliding.LimiterOptions{Limit: 10, FailOpen: true}
	a, b := limiterOf(rdb, "a", o), limiterOf(rdb, "b", o)
	here, there := limiterOf(cluster, "a", o), limiterOf(cluster, "b", o)
	for says, asks := range map[string][]sliding.Ask{
		"nothing to ask":             nil,
		"ask 2 of AllowAll is empty": {a.Ask("ada", 1), {}},
		"asked for 11 calls":         {a.Ask("ada", 11), b.Ask("ada", 1)},
		"have different clients":     {a.Ask("ada", 1), limiterOf(other, "b", o).Ask("ada", 1)},
		"asks twice for \"a:ada\"":   {a.Ask("ada", 1), b.Ask("ada", 1), a.Ask("ada", 2)},
	} {
		if ok, _, err := sliding.AllowAll(t.Context(), asks...); ok || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v", says, ok, err)
		}
	}
	if ok, d, err := sliding.AllowAll(t.Context(), here.Ask("{ada}", 1), there.Ask("{ada}", 1)); !ok || d[1].Remaining != 9 || err != nil {
		t.Errorf("%v, %+v, %v", ok, d, err)
	}
}

// It may depend on the data whether keys are in two slots: then limits that fail open allow their calls, and events report it.
func TestAllowAllOfTwoSlots(t *testing.T) {
	cluster := redistest.StartCluster(t, 3).Client()
	var events []mayfly.Event
	ns := calls(cluster, time.Hour)
	ns.Observer = mayfly.ObserverFunc(func(_ context.Context, e mayfly.Event) { events = append(events, e) })
	open := mayfly.Must(sliding.NewLimiter(ns, sliding.LimiterOptions{Limit: 10, FailOpen: true}))
	wide := limiterOf(cluster, "wide", sliding.LimiterOptions{Limit: 20, FailOpen: true})
	shut := limiterOf(cluster, "shut", sliding.LimiterOptions{Limit: 30})
	ok, d, err := sliding.AllowAll(t.Context(), open.Ask("ada", 1), wide.Ask("ada", 1))
	if !ok || !d[0].Allowed || !d[1].Allowed || d[1].Limit != 20 || err == nil || !strings.Contains(err.Error(), "put what the keys share in braces") {
		t.Errorf("%v, %+v, %v", ok, d, err)
	}
	ok, d, err = sliding.AllowAll(t.Context(), open.Ask("ada", 1), shut.Ask("ada", 1))
	if ok || !d[0].Allowed || d[1].Allowed || d[1].Limit != 30 || err == nil {
		t.Errorf("%v, %+v, %v", ok, d, err)
	}
	if len(events) != 2 || events[0].Err == nil || events[0].Outcome != mayfly.OutcomeFailed {
		t.Errorf("%+v", events)
	}
	if d, err := open.Allow(t.Context(), "ada", 0); d.Remaining != 10 || err != nil {
		t.Errorf("it was counted: %+v, %v", d, err)
	}
}

// A caller's mistake allows nothing, even if everything fails open, and the decision names the limit.
func TestACallThatIsWrongIsNeverAllowed(t *testing.T) {
	l := limiterOf(redistest.Start(t).Client(), "a", sliding.LimiterOptions{Limit: 10, FailOpen: true})
	for _, ask := range []struct {
		key string
		n   int
	}{{"ada", -1}, {"ada", 11}, {"", 1}} {
		if d, err := l.Allow(t.Context(), ask.key, ask.n); d != (sliding.Decision{Limit: 10}) || err == nil {
			t.Errorf("%v: %+v, %v", ask, d, err)
		}
		ok, d, err := sliding.AllowAll(t.Context(), l.Ask("bob", 1), l.Ask(ask.key, ask.n))
		if ok || d[0] != (sliding.Decision{Limit: 10}) || d[1] != d[0] || err == nil {
			t.Errorf("%v: %v, %+v, %v", ask, ok, d, err)
		}
	}
	if d, _ := l.Allow(t.Context(), "bob", 0); d.Remaining != 10 {
		t.Errorf("%+v", d)
	}
}

// When Redis is down, limits that fail open allow their calls, and the call as a whole is allowed if each does. A lost reply is an unknown
// outcome. Each limiter's observer gets an event.
func TestAllowAllWithoutRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var events []mayfly.Event
		ns := calls(srv.Client(), time.Hour)
		ns.Observer = mayfly.ObserverFunc(func(_ context.Context, e mayfly.Event) { events = append(events, e) })
		open := mayfly.Must(sliding.NewLimiter(ns, sliding.LimiterOptions{Limit: 10, FailOpen: true}))
		wide := limiterOf(srv.Client(), "wide", sliding.LimiterOptions{Limit: 10, FailOpen: true})
		shut := limiterOf(srv.Client(), "shut", sliding.LimiterOptions{Limit: 10})
		sliding.AllowAll(t.Context(), open.Ask("ada", 1), wide.Ask("ada", 1))
		srv.DropReply("evalsha")
		ok, d, err := sliding.AllowAll(t.Context(), open.Ask("ada", 1), wide.Ask("ada", 1))
		if !ok || !d[0].Allowed || d[0].Limit != 10 || !errors.Is(err, mayfly.ErrUnknownOutcome) {
			t.Errorf("%v, %+v, %v", ok, d, err)
		}
		srv.DropReply("evalsha")
		ok, d, err = sliding.AllowAll(t.Context(), open.Ask("ada", 1), shut.Ask("ada", 1))
		if ok || !d[0].Allowed || d[1].Allowed || err == nil {
			t.Errorf("%v, %+v, %v", ok, d, err)
		}
		if d, _ := open.Allow(t.Context(), "ada", 0); d.Remaining != 7 {
			t.Errorf("each was counted once: %+v", d)
		}
		if len(events) != 4 || events[0].Err != nil || events[1].Err == nil {
			t.Errorf("%+v", events)
		}
	})
}

// leased100 asks for 100 calls, so that there is a share, and returns a function that asks for one more and says how many are left.
func leased100(t *testing.T, l *sliding.Limiter[string]) (left func() int) {
	left = func() int {
		d, err := l.Allow(t.Context(), "ada", 1)
		want(t, err, nil)
		return d.Remaining
	}
	for range 100 {
		left()
	}
	return left
}

// AllowAll takes the calls from the process's shares, without a trip, if these have all of them. Otherwise the trip counts them, and the shares
// stay as they are.
func TestAllowAllOfShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var count trips
		rdb := srv.Client()
		rdb.AddHook(&count)
		o := sliding.LimiterOptions{Limit: 1e7, Lease: time.Minute}
		a, b, none := limiterOf(rdb, "a", o), limiterOf(rdb, "b", o), limiterOf(rdb, "none", sliding.LimiterOptions{Limit: 1})
		defer a.Close(t.Context())
		defer b.Close(t.Context())
		left := leased100(t, a)
		leased100(t, b)
		was, before := left(), count.Load()
		for range 5 {
			if ok, _, err := sliding.AllowAll(t.Context(), a.Ask("ada", 1), b.Ask("ada", 1)); !ok || err != nil {
				t.Error(ok, err)
			}
		}
		if n := count.Load() - before; n != 0 {
			t.Errorf("%d trips", n)
		}
		if now := left(); now != was-6 {
			t.Errorf("%d were left, now %d", was, now)
		}
		for i := range 3 {
			ok, d, err := sliding.AllowAll(t.Context(), a.Ask("ada", 1), none.Ask("ada", 1))
			if ok != (i == 0) || !d[0].Allowed || err != nil {
				t.Error(ok, d, err)
			}
		}
		if now := left(); now != was-7 {
			t.Errorf("%d were left, now %d: what a trip was for was taken from a share", was, now)
		}
		if ok, _, err := sliding.AllowAll(t.Context(), a.Ask("ada", 1), b.Ask("ada", 1e7)); ok || err != nil {
			t.Error(ok, err)
		}
		if now := left(); now != was-8 {
			t.Errorf("%d were left, now %d: what one share lacked was not put back into the other", was, now)
		}
		want(t, a.Close(t.Context()), nil)
		if d, err := limiterOf(rdb, "a", sliding.LimiterOptions{Limit: 1e7}).Allow(t.Context(), "ada", 0); d.Remaining != 1e7-110 || err != nil {
			t.Errorf("%+v, %v, where 110 calls were admitted", d, err)
		}
	})
}

// A trip that fails uses nothing of shares, whether the calls are allowed or not.
func TestAllowAllOfSharesThatFailsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		a := limiterOf(srv.Client(), "a", sliding.LimiterOptions{Limit: 1e7, Lease: time.Minute, FailOpen: true})
		open, shut := limiterOf(srv.Client(), "open", sliding.LimiterOptions{Limit: 10, FailOpen: true}), limiterOf(srv.Client(), "shut", sliding.LimiterOptions{Limit: 10})
		defer a.Close(t.Context())
		left := leased100(t, a)
		for other, opens := range map[*sliding.Limiter[string]]bool{open: true, shut: false} {
			was := left()
			srv.FailNext("evalsha", "ERR not now")
			ok, _, err := sliding.AllowAll(t.Context(), a.Ask("ada", 2), other.Ask("ada", 1))
			if now := left(); ok != opens || err == nil || now != was-1 {
				t.Errorf("%v, %v: %d were left, and now %d", ok, err, was, now)
			}
		}
	})
}

// Calls that AllowAll wanted from a limit with shares do not count if another limit denies them, whatever ends the share during the trip.
func TestADeniedAllowAllTakesNothing(t *testing.T) {
	for name, meanwhile := range map[string]func(site *sliding.Limiter[string], cancel func()) (admitted int){
		"another share is taken": func(site *sliding.Limiter[string], _ func()) int {
			d, _ := site.Allow(context.Background(), "ada", 1)
			return map[bool]int{true: 1}[d.Allowed]
		},
		"the limiter is closed": func(site *sliding.Limiter[string], _ func()) int { site.Close(context.Background()); return 0 },
		"the share ends":        func(*sliding.Limiter[string], func()) int { time.Sleep(80 * time.Millisecond); return 0 },
		"the caller leaves": func(site *sliding.Limiter[string], cancel func()) int {
			cancel()
			site.Close(context.Background())
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				rdb := srv.Client()
				ns := calls(rdb, 10*time.Second)
				site := mayfly.Must(sliding.NewLimiter(ns, sliding.LimiterOptions{Limit: 100_000, Lease: 50 * time.Millisecond}))
				user := limiterOf(rdb, "user", sliding.LimiterOptions{Limit: 3})
				user.Allow(t.Context(), "ada", 3)
				n := spend(t, site, 1003)
				srv.Latency(100 * time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var all sync.WaitGroup
				all.Go(func() {
					if ok, _, err := sliding.AllowAll(ctx, site.Ask("ada", 20), user.Ask("ada", 1)); ok || (err != nil) != (name == "the caller leaves") {
						t.Error(ok, err)
					}
				})
				synctest.Wait()
				n += meanwhile(site, cancel)
				all.Wait()
				srv.Latency(0)
				want(t, site.Close(t.Context()), nil)
				time.Sleep(200 * time.Millisecond)
				if got := counted(t, srv); got != n {
					t.Errorf("%d are counted, where %d were admitted", got, n)
				}
			})
		})
	}
}

// Crowds use AllowAll with two limits with shares, one with small shares, and Allow with the other: the calls admitted are those counted in the end.
func TestWhatAllowAllAdmitsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		rdb := srv.Client()
		o := sliding.LimiterOptions{Limit: 100_000, Lease: 50 * time.Millisecond}
		site := mayfly.Must(sliding.NewLimiter(calls(rdb, 10*time.Second), o))
		ns := calls(rdb, 10*time.Second)
		ns.Prefix, o.Limit = "tenant:", 20_000
		tenant := mayfly.Must(sliding.NewLimiter(ns, o))
		srv.Latency(time.Millisecond)
		var admitted atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for range effort.Times(60, 600) {
					if d, err := site.Allow(t.Context(), "ada", 1); err != nil || !d.Allowed {
						t.Error(d, err)
					}
					tenant.Allow(t.Context(), "ada", 1)
					admitted.Add(1)
					asks := []sliding.Ask{site.Ask("ada", 2), tenant.Ask("ada", 3)}
					if i%2 == 0 {
						slices.Reverse(asks)
					}
					ok, _, err := sliding.AllowAll(t.Context(), asks...)
					want(t, err, nil)
					if ok {
						admitted.Add(2)
					}
					time.Sleep(time.Duration(rand.Int64N(int64(time.Millisecond))))
				}
			})
		}
		all.Wait()
		site.Close(t.Context())
		tenant.Close(t.Context())
		if got := counted(t, srv); got != int(admitted.Load()) {
			t.Errorf("%d are counted, where %d were admitted", got, admitted.Load())
		}
	})
}
