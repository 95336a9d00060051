package cacheaside_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// clocks is a cache whose values live for an hour and are renewed by reads in its second half. A value's version is the number of loads so far.
type clocks struct {
	t     *testing.T
	rdb   redis.UniversalClient
	srv   *redistest.Server // nil: it is a miniredis
	mini  *miniredis.Miniredis
	to    *atomic.Pointer[redistest.Server] // where connections go
	loads atomic.Int32
	c     *cacheaside.Cache[int, user]
	full  string
}

func (w *clocks) cache() *cacheaside.Cache[int, user] {
	ns := namespace(w.t, w.rdb)
	ns.TTL, ns.Prefix = time.Hour, "users:"
	return must[int, user](w.t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
		return user{Version: int(w.loads.Add(1))}, nil
	}, cacheaside.Options{Early: earlyrefresh.Window(0.5)}))
}

// on returns a cache that has loaded a value, and knows its server's clock.
func on(t *testing.T, tells bool) *clocks {
	w := &clocks{t: t, full: "users:7", to: new(atomic.Pointer[redistest.Server])}
	if !tells {
		w.mini = miniredis.NewMiniRedis()
		t.Cleanup(w.mini.Close)
		w.rdb = redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true, PoolSize: 100,
			Dialer: func(context.Context, string, string) (net.Conn, error) { return w.mini.Dial() }})
	} else {
		w.srv = redistest.Start(t)
		w.to.Store(w.srv)
		o := w.srv.Options()
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return w.to.Load().Options().Dialer(ctx, network, addr)
		}
		w.rdb = redis.NewClient(o)
		w.srv.SetTime(time.Now().Add(24 * time.Hour)) // its clock differs from ours
	}
	t.Cleanup(func() { w.rdb.Close() })
	w.c = w.cache()
	for range 2 {
		if v := w.get(); v != 1 {
			t.Fatalf("got version %d", v)
		}
		time.Sleep(20 * time.Millisecond) // a reading of the clock without a record is repeated soon
	}
	if w.srv != nil && w.asked() {
		t.Fatal("PTTL is asked at each read")
	}
	return w
}

// get reads the value, waits for the background work that this begins, and returns the version.
func (w *clocks) get() int {
	w.t.Helper()
	v := get(w.t, w.c, 0)
	synctest.Wait()
	return v
}

// asked reads the value, and reports whether that sent a PTTL.
func (w *clocks) asked() bool {
	w.t.Helper()
	w.srv.ClearLog()
	w.get()
	return slices.ContainsFunc(w.srv.Log(), func(line string) bool { return strings.HasPrefix(line, "pttl") })
}

func (w *clocks) do(args ...any) {
	w.t.Helper()
	if err := w.rdb.Do(w.t.Context(), args...).Err(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *clocks) raw() []byte {
	w.t.Helper()
	raw, err := w.rdb.Get(w.t.Context(), w.full).Bytes()
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

// end moves the end that the record states.
func (w *clocks) end(by time.Duration) {
	w.t.Helper()
	raw := w.raw()
	_, h, _ := record.Parse(raw)
	if h.Ends == 0 {
		w.t.Fatal("the record does not tell when it ends")
	}
	record.SetEnds(raw, h.Ends+by.Milliseconds())
	w.do("set", w.full, raw, "keepttl")
}

// server moves the server's clock.
func (w *clocks) server(by time.Duration) {
	at, err := w.rdb.Time(w.t.Context()).Result()
	expect.OK(w.t, err)
	w.srv.SetTime(at.Add(by))
}

// Clocks and TTLs are moved: expired values are not served, and no load begins just because of what a record states. At worst a renewal comes
// up to two seconds late.
func TestTheClockIsMoved(t *testing.T) {
	const minute = time.Minute
	type seen struct{ version, loads int }
	for name, row := range map[string]struct {
		mini  bool
		do    func(w *clocks)
		first seen // what the next reader gets, and the number of loads by then
		later seen // the same after two seconds
	}{
		"nobody":                        {do: func(*clocks) {}, first: seen{1, 1}, later: seen{1, 1}},
		"time, until it is due":         {do: func(*clocks) { time.Sleep(31 * minute) }, first: seen{1, 2}, later: seen{2, 2}},
		"time, between two looks":       {do: untilDue, first: seen{1, 2}, later: seen{2, 2}},
		"time, until it is over":        {do: func(*clocks) { time.Sleep(61 * minute) }, first: seen{2, 2}, later: seen{2, 2}},
		"EXPIRE, and then it is due":    {do: func(w *clocks) { w.do("expire", w.full, 20*60) }, first: seen{1, 1}, later: seen{1, 2}},
		"EXPIRE, and then it is over":   {do: func(w *clocks) { w.do("pexpire", w.full, 5); time.Sleep(6 * time.Millisecond) }, first: seen{2, 2}, later: seen{2, 2}},
		"EXPIRE, longer than can be":    {do: func(w *clocks) { w.do("expire", w.full, 2*60*60) }, first: seen{1, 1}, later: seen{2, 2}},
		"EXPIRE, longer":                {do: func(w *clocks) { time.Sleep(31 * minute); w.do("expire", w.full, 50*60) }, first: seen{1, 1}, later: seen{1, 1}},
		"EXPIRE, beyond what it tells":  {do: func(w *clocks) { time.Sleep(31 * minute); w.do("expire", w.full, 60*60); time.Sleep(29 * minute) }, first: seen{1, 1}, later: seen{1, 1}},
		"PERSIST":                       {do: func(w *clocks) { w.do("persist", w.full); time.Sleep(61 * minute) }, first: seen{1, 1}, later: seen{1, 1}},
		"RESTORE, and then it is due":   {do: restored(20 * minute), first: seen{1, 1}, later: seen{1, 2}},
		"RESTORE, longer than can be":   {do: restored(3 * time.Hour), first: seen{1, 1}, later: seen{2, 2}},
		"RESTORE, once it was over":     {do: func(w *clocks) { dump := w.dump(); time.Sleep(61 * minute); w.restore(dump, 50*minute) }, first: seen{1, 1}, later: seen{1, 1}},
		"a record of a clock ahead":     {do: func(w *clocks) { w.end(24 * time.Hour) }, first: seen{1, 1}, later: seen{1, 1}},
		"of a clock ahead, and due":     {do: func(w *clocks) { w.end(24 * time.Hour); time.Sleep(31 * minute) }, first: seen{1, 2}, later: seen{2, 2}},
		"a record of a clock behind":    {do: func(w *clocks) { w.end(-24 * time.Hour) }, first: seen{1, 1}, later: seen{1, 1}},
		"of a clock behind, and due":    {do: func(w *clocks) { w.end(-24 * time.Hour); untilDue(w) }, first: seen{1, 2}, later: seen{2, 2}},
		"of the version before":         {do: version1, first: seen{1, 1}, later: seen{1, 1}},
		"of the version before, due":    {do: func(w *clocks) { version1(w); w.do("expire", w.full, 20*60) }, first: seen{1, 2}, later: seen{2, 2}},
		"another program's":             {do: others(50 * minute), first: seen{1, 1}, later: seen{1, 1}},
		"another program's, and due":    {do: others(20 * minute), first: seen{1, 2}, later: seen{2, 2}},
		"SWAPDB, to what is due":        {do: swapped(20 * minute), first: seen{1, 1}, later: seen{1, 2}},
		"SWAPDB, to nothing":            {do: func(w *clocks) { w.do("swapdb", 0, 1) }, first: seen{2, 2}, later: seen{2, 2}},
		"its clock, until it is due":    {do: func(w *clocks) { w.server(31 * minute) }, first: seen{1, 1}, later: seen{1, 2}},
		"its clock, until it is over":   {do: func(w *clocks) { w.server(61 * minute) }, first: seen{2, 2}, later: seen{2, 2}},
		"its clock, back":               {do: func(w *clocks) { w.server(-2 * time.Hour) }, first: seen{1, 1}, later: seen{2, 2}},
		"its clock, back, once due":     {do: func(w *clocks) { time.Sleep(31 * minute); w.server(-20 * minute) }, first: seen{1, 1}, later: seen{1, 1}},
		"Advance, until it is due":      {do: func(w *clocks) { w.srv.Advance(31 * minute) }, first: seen{1, 1}, later: seen{1, 2}},
		"Advance, until it is over":     {do: func(w *clocks) { w.srv.FastForward(61 * minute) }, first: seen{2, 2}, later: seen{2, 2}},
		"failover, clock ahead":         {do: failover(31 * minute), first: seen{1, 1}, later: seen{1, 2}},
		"failover, clock ahead, over":   {do: failover(61 * minute), first: seen{2, 2}, later: seen{2, 2}},
		"failover, clock behind":        {do: failover(-2 * time.Hour), first: seen{1, 1}, later: seen{2, 2}},
		"miniredis, until it is due":    {mini: true, do: func(w *clocks) { w.mini.FastForward(31 * minute) }, first: seen{1, 1}, later: seen{1, 2}},
		"miniredis, until it is over":   {mini: true, do: func(w *clocks) { w.mini.FastForward(61 * minute) }, first: seen{2, 2}, later: seen{2, 2}},
		"miniredis, whose TTLs stand":   {mini: true, do: func(w *clocks) { time.Sleep(3 * time.Hour) }, first: seen{1, 1}, later: seen{1, 1}},
		"miniredis, which stood before": {mini: true, do: func(w *clocks) { time.Sleep(minute); w.get(); w.mini.FastForward(31 * minute) }, first: seen{1, 2}, later: seen{2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := on(t, !row.mini)
				row.do(w)
				if got := (seen{w.get(), int(w.loads.Load())}); got != row.first {
					t.Errorf("the next reader has %+v, want %+v", got, row.first)
				}
				time.Sleep(2 * time.Second)
				if got := (seen{w.get(), int(w.loads.Load())}); got != row.later {
					t.Errorf("after two seconds: %+v, want %+v", got, row.later)
				}
			})
		})
	}
}

// untilDue lets time pass until the value has been due for a moment in which nobody has read the clock.
func untilDue(w *clocks) {
	at, err := w.rdb.PTTL(w.t.Context(), w.full).Result()
	expect.OK(w.t, err)
	time.Sleep(at - 30*time.Minute - 100*time.Millisecond)
	w.get() // looks
	w.get() // has a connection for a single command
	time.Sleep(200 * time.Millisecond)
}

// version1 stores the value as the previous version of the format, which states no end.
func version1(w *clocks) {
	raw := w.raw()
	raw = append(raw[:record.EndsFrom], raw[record.EndsTo:]...)
	raw[4] = 1
	record.Seal(raw)
	w.do("set", w.full, raw, "keepttl")
}

// others has another program store the value.
func others(ttl time.Duration) func(w *clocks) {
	return func(w *clocks) { w.do("set", w.full, `{"Version":1}`, "px", ttl.Milliseconds()) }
}

func (w *clocks) dump() string {
	dump, err := w.rdb.Dump(w.t.Context(), w.full).Result()
	expect.OK(w.t, err)
	return dump
}

func (w *clocks) restore(dump string, ttl time.Duration) {
	w.do("restore", w.full, ttl.Milliseconds(), dump, "replace")
}

func restored(ttl time.Duration) func(w *clocks) {
	return func(w *clocks) { w.restore(w.dump(), ttl) }
}

func swapped(ttl time.Duration) func(w *clocks) {
	return func(w *clocks) {
		w.do("copy", w.full, w.full, "db", 1)
		w.do("pexpire", w.full, ttl.Milliseconds())
		w.do("swapdb", 0, 1) // and back, so that it is the same value
		w.do("swapdb", 0, 1)
	}
}

// failover replaces the server by another one, with the data that a replica of the first would have and a different clock.
func failover(apart time.Duration) func(w *clocks) {
	return func(w *clocks) {
		ends, err := w.rdb.Do(w.t.Context(), "pexpiretime", w.full).Int64()
		expect.OK(w.t, err)
		raw, at := w.raw(), w.rdb.Time(w.t.Context()).Val()
		next := redistest.Start(w.t)
		next.SetTime(at.Add(apart))
		expect.OK(w.t, next.Client().Do(w.t.Context(), "set", w.full, raw, "pxat", ends).Err())
		w.to.Store(next)
		w.srv.KillConnections()
	}
}

// A hit is one command. PTTL and TIME are sent once a second, and while nothing is known yet.
func TestAHitIsOneCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := on(t, true)
		count := func(what string) (n int) {
			for _, line := range w.srv.Log() {
				if strings.HasPrefix(line, what) {
					n++
				}
			}
			return n
		}
		w.srv.ClearLog()
		const reads, seconds = 1000, 10
		for i := range reads {
			time.Sleep(seconds * time.Second / reads)
			get(t, w.c, i) // one, or many
		}
		if gets, pttls, times := count("get "), count("pttl "), count("time"); gets != reads || pttls > seconds || times != pttls || pttls < seconds-1 {
			t.Errorf("%d hits in %d s: %d GET, %d PTTL, %d TIME", reads, seconds, gets, pttls, times)
		}
		other := w.cache() // of the same client, which knows the clock
		w.srv.ClearLog()
		get(t, other, 0)
		if n := count("pttl"); n > 0 {
			t.Errorf("another cache of the client asked %d times for PTTL", n)
		}
	})
}

// A process that does not know the clock asks for it: its first reader finds out that a value is due.
func TestNothingIsJudgedBeforeTheFirstLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := on(t, true)
		time.Sleep(31 * time.Minute)
		o := w.srv.Options()
		w.rdb = redis.NewClient(o)
		defer w.rdb.Close()
		w.c = w.cache()
		if v := w.get(); v != 1 || w.loads.Load() != 2 {
			t.Errorf("the first reader got version %d, and there were %d loads", v, w.loads.Load())
		}
	})
	synctest.Test(t, func(t *testing.T) { // nor before the first record: the time alone says nothing about a server whose TTLs follow another clock
		w := on(t, false)
		w.mini.FastForward(31 * time.Minute)
		w.rdb = redis.NewClient(w.rdb.(*redis.Client).Options())
		defer w.rdb.Close()
		w.c = w.cache()
		expect.OK(t, w.c.Delete(t.Context(), 8))
		w.c.Lookup(t.Context(), 8) // shows nothing
		found, err := w.c.GetMany(t.Context(), []int{8})
		expect.OK(t, err)
		if w.get(); w.loads.Load() != 3 || found[8].Version != 2 {
			t.Errorf("%d loads", w.loads.Load())
		}
	})
}

// A due value takes two trips. If Redis fails in between, the call returns the value from the first, within RedisTimeout in all, and loads nothing.
func TestRedisFailsBetweenTwoLooks(t *testing.T) {
	for name, fail := range map[string]func(w *clocks){
		"an error": func(w *clocks) { w.srv.FailNext("pttl", "ERR broken") },
		"silence": func(w *clocks) {
			w.srv.Latency(40 * time.Millisecond)
			w.rdb.AddHook(before{"pttl", w.srv.Hang})
		},
	} {
		for i, reader := range []string{"Get", "GetMany"} {
			t.Run(name+", "+reader, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := on(t, true)
					untilDue(w)
					fail(w)
					begun := time.Now()
					if v, loads := get(t, w.c, i), w.loads.Load(); v != 1 || loads != 1 {
						t.Errorf("got version %d after %d loads", v, loads)
					}
					if took := time.Since(begun); took > 150*time.Millisecond {
						t.Errorf("it took %v", took)
					}
					w.srv.Thaw()
				})
			})
		}
	}
}

// A key whose TTL another program has shortened is copied for the time left, whatever its record states.
func TestACopyLivesAsLongAsPTTLSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		w := &clocks{t: t, rdb: srv.Client(), full: "users:7"}
		ns := namespace(t, w.rdb)
		ns.TTL, ns.Prefix = time.Hour, "users:"
		withLocal(t, &ns, mayfly.LocalOptions{})
		var loads atomic.Int32
		w.c = must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
			return user{Version: int(loads.Add(1))}, nil
		}, cacheaside.Options{}))
		w.get()
		w.do("pexpire", w.full, 200)
		time.Sleep(time.Millisecond)
		for range 2 { // the first one copies
			if v := w.get(); v != 1 {
				t.Errorf("got version %d", v)
			}
		}
		srv.DropInvalidations(true)
		time.Sleep(200 * time.Millisecond) // nobody knows yet that pushes are lost
		if v := w.get(); v != 2 {
			t.Errorf("got version %d of a key that is over", v)
		}
	})
}
