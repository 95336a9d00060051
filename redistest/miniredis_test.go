package redistest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

// migrated is what tests find under the names that miniredis gave it. That both types have it, with the same signatures, the compiler checks.
type migrated interface {
	Start() error
	StartAddr(addr string) error
	Restart() error
	Close()
	Addr() string
	Host() string
	Port() string
	FastForward(time.Duration)
	SetTime(time.Time)
	SetError(string)
	RequireAuth(string)
	FlushAll()
	Exists(string) bool
	Get(string) (string, error)
	Set(k, v string) error
	TTL(string) time.Duration
	SetTTL(string, time.Duration)
	Del(string) bool
	Keys() []string
	HGet(k, f string) string
	HSet(k string, fv ...string)
	List(string) ([]string, error)
	Push(k string, v ...string) (int, error)
	Lpush(k, v string) (int, error)
	Dump() string
}

var (
	_ migrated                          = (*miniredis.Miniredis)(nil)
	_ migrated                          = (*redistest.Miniredis)(nil)
	_ func() (*redistest.Server, error) = redistest.Run
	_ func() *redistest.Server          = redistest.NewMiniRedis
	_ redistest.Tester                  = miniredis.Tester(nil)
	_ redistest.T                       = miniredis.T(nil)
)

// The names taken over from miniredis do what they do there. Only errors' identities are each package's own.
func TestDirectAccessIsMiniredis(t *testing.T) {
	script := func(m migrated) (out []string) {
		say := func(v ...any) { out = append(out, fmt.Sprintf("%q", v)) }
		say(m.Set("s", "v"))
		say(m.Get("s"))
		say(m.Get("none"))
		say(m.Exists("s"), m.Exists("none"))
		m.HSet("h", "f", "1", "g", strings.Repeat("long ", 20))
		say(m.HGet("h", "f"), m.HGet("h", "none"), m.HGet("none", "f"), m.HGet("s", "f"))
		say(m.Get("h"))
		say(m.Set("h", "v"))
		say(m.Push("l", "a", "b"))
		say(m.Push("l"))
		say(m.Lpush("l", "z"))
		say(m.Push("s", "a"))
		say(m.Lpush("s", "a"))
		say(m.List("l"))
		say(m.List("none"))
		say(m.List("s"))
		say(m.TTL("s"), m.TTL("none"))
		m.SetTTL("s", time.Hour)
		say(m.TTL("s") > 59*time.Minute)
		m.FastForward(59 * time.Minute)
		say(m.TTL("s") <= time.Minute, m.Exists("s"))
		m.SetTTL("s", 0)
		say(m.TTL("s"))
		m.SetTTL("s", time.Second)
		m.FastForward(2 * time.Second)
		say(m.Exists("s"))
		say(m.Set("t", "1"))
		m.HSet("t", "f", "v")
		say(m.HGet("t", "f"))
		say(m.Keys())
		say(m.Dump())
		say(m.Del("t"), m.Del("t"))
		m.FlushAll()
		say(m.Keys(), m.Dump())
		return out
	}
	want, got := script(miniredis.RunT(t)), script(redistest.RunT(t))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestChecks(t *testing.T) {
	srv := redistest.RunT(t)
	srv.Set("s", "v")
	srv.Push("l", "a", "b")
	srv.CheckGet(t, "s", "v")
	srv.CheckList(t, "l", "a", "b")
	fails := &failures{}
	srv.CheckGet(fails, "s", "w")
	srv.CheckGet(fails, "none", "w")
	srv.CheckList(fails, "l", "a")
	srv.CheckList(fails, "s")
	if fails.n != 4 {
		t.Errorf("%d of 4 checks failed", fails.n)
	}
}

type failures struct{ n int }

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestRequireAuth(t *testing.T) {
	srv := redistest.RunT(t)
	srv.RequireAuth("secret")
	c := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Error(err)
	}
	if err := srv.Client().Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	srv.Set("k", "v") // past the password
	srv.RequireAuth("")
	if err := c.Get(t.Context(), "k").Err(); err != nil {
		t.Error(err)
	}
}

func TestRunAndStartAddr(t *testing.T) {
	a, err := redistest.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b := redistest.NewMiniRedis()
	if err := b.StartAddr(a.Addr()); err == nil {
		t.Error("two servers have one port")
	}
	a.Close()
	if err := b.StartAddr(a.Addr()); err != nil {
		t.Error(err)
	}
	defer b.Close()
	if b.Addr() != a.Addr() {
		t.Errorf("asked for %s, got %s", a.Addr(), b.Addr())
	}
}
