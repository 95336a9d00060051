package cacheaside_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// distant is a connection to Redis on which each trip takes some time.
type distant struct{ takes atomic.Int64 }

func (f *distant) trip(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(f.takes.Load())):
		return nil
	}
}

func (f *distant) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *distant) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := f.trip(ctx); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (f *distant) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := f.trip(ctx); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
		return next(ctx, cmds)
	}
}

// If a second trip would come too late, the call returns the value without it, and the next read asks for everything at once: the due value is
// renewed, and nothing fails.
func TestARedisThatIsFarAway(t *testing.T) {
	for i, reader := range []string{"Get", "GetMany"} {
		t.Run(reader, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := on(t, true)
				way := new(distant)
				w.rdb.AddHook(way)
				untilDue(w)
				way.takes.Store(int64(80 * time.Millisecond)) // of 150
				for n, want := range []int{1, 1, 2, 2} {
					begun := time.Now()
					v := get(t, w.c, i)
					if took := time.Since(begun); v != want || took != 80*time.Millisecond {
						t.Errorf("read %d got version %d after %v, want %d", n, v, took, want)
					}
					time.Sleep(400 * time.Millisecond) // the renewal is four trips
				}
				if n := w.loads.Load(); n != 2 || w.c.Stats().RedisErrors != 0 {
					t.Errorf("%d loads, %+v", n, w.c.Stats())
				}
				way.takes.Store(0)
				for range 3 {
					get(t, w.c, i)
				}
				if w.asked() {
					t.Error("PTTL is asked of a Redis that is near again")
				}
			})
		})
	}
}

// A call that began in time does not wait for a load because the value ended between its two trips. The next reader loads it.
func TestAnEndBetweenTwoTrips(t *testing.T) {
	for i, reader := range []string{"Get", "GetMany"} {
		t.Run(reader, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way, w := new(distant), on(t, true)
				w.rdb.AddHook(way)
				end := time.Now().Add(w.rdb.PTTL(t.Context(), w.full).Val())
				time.Sleep(time.Until(end) - 100*time.Millisecond)
				for range 3 { // reads the clock, by another key
					_, err := w.c.Get(t.Context(), 8)
					expect.OK(t, err)
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(time.Until(end) - 25*time.Millisecond)
				way.takes.Store(int64(20 * time.Millisecond))
				loads := w.loads.Load()
				begun := time.Now()
				if v := get(t, w.c, i); v != 1 || time.Since(begun) != 40*time.Millisecond {
					t.Errorf("got version %d after %v, want the one that was there in time", v, time.Since(begun))
				}
				if v := get(t, w.c, i); v != int(loads)+1 {
					t.Errorf("then got version %d", v)
				}
			})
		})
	}
}

// A value stored by a process with a stale window is asked for again before it is served, and that question has a time limit of its own.
func TestAnothersStaleWindowFarAway(t *testing.T) {
	for name, early := range map[string]earlyrefresh.Policy{"never early": earlyrefresh.Never, "by default": nil} {
		for i, reader := range []string{"Get", "GetMany"} {
			t.Run(name+", "+reader, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					rdb := redistest.Start(t).Client()
					way := new(distant)
					rdb.AddHook(way)
					ns := namespace(t, rdb)
					var loads atomic.Int32
					load := func(context.Context, int) (user, error) { return user{Version: int(loads.Add(1))}, nil }
					stale := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{StaleWhile: time.Hour}))
					c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{Early: early}))
					get(t, stale, i)
					synctest.Wait()
					way.takes.Store(int64(80 * time.Millisecond))
					for range 10 {
						if v := get(t, c, i); v != 1 {
							t.Errorf("got version %d of what is fresh", v)
						}
					}
				})
			})
		}
	}
}

// A Redis user without permission for TIME is refused once, and not at each fill: Redis keeps a log of refusals.
func TestFillsOfAUserWithoutTIME(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		c := must[int, user](t)(cacheaside.New(namespace(t, srv.Client()), func(context.Context, int) (user, error) { return user{Version: 1}, nil },
			cacheaside.Options{}))
		srv.FailNext("time", "NOPERM this user has no permissions to run the 'time' command")
		for key := range 20 {
			_, err := c.Get(t.Context(), key)
			expect.OK(t, err)
		}
		synctest.Wait()
		for key := range 20 {
			raw, err := srv.Client().Get(t.Context(), fmt.Sprint(t.Name(), ":", key)).Bytes()
			expect.OK(t, err)
			if _, h, _ := record.Parse(raw); h.Ends != 0 {
				t.Errorf("the fill of %d asked for the time", key)
			}
		}
	})
}

// Records that do not state their end cost a second trip each, until there are many: then PTTL is sent at once. When there are few again, it is
// not.
func TestRecordsThatTellNoEnd(t *testing.T) {
	for name, forget := range map[string]func(raw []byte) []byte{
		"of a user without TIME": func(raw []byte) []byte { record.SetEnds(raw, 0); return raw },
		"of another program":     func([]byte) []byte { return []byte(`{"Version":1}`) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := on(t, true)
				trips := func() int {
					w.srv.ClearLog()
					for range 100 {
						get(t, w.c, 0)
					}
					return strings.Count("\n"+strings.Join(w.srv.Log(), "\n"), "\nget ")
				}
				raw := forget(w.raw())
				w.do("set", w.full, raw, "keepttl")
				if n := trips(); n > 110 {
					t.Errorf("100 reads asked %d times", n)
				}
				if !w.asked() || w.loads.Load() != 1 {
					t.Errorf("PTTL is not asked, or it was loaded: %d", w.loads.Load())
				}
				expect.OK(t, w.c.Set(t.Context(), 7, user{Version: 1}))
				if n := trips(); n > 100 || w.asked() {
					t.Errorf("100 reads of what tells its end asked %d times", n)
				}
			})
		})
	}
}
