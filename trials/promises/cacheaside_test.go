package promises

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

type cached = cacheaside.Cache[string, string]

// shop is an origin, with a cache behind the proxy and those of other processes.
type shop struct {
	world
	origin atomic.Pointer[string] // all keys have this value
	plain  bool
	opt    cacheaside.Options
	behind *cached
}

// open returns the cache of another process. It is closed with the test.
func (s *shop) open(rdb redis.UniversalClient) *cached {
	s.t.Helper()
	ns := mayfly.Namespace[string, string]{Name: "users", Redis: rdb, Prefix: s.prefix, TTL: time.Hour, Plain: s.plain}
	o := s.opt
	o.RedisTimeout = s.redisTimeout(rdb)
	c := mayfly.Must(cacheaside.NewBatch(ns, func(_ context.Context, keys []string) (map[string]string, error) {
		m := make(map[string]string)
		for _, key := range keys {
			if v := *s.origin.Load(); v != "" {
				m[key] = v
			}
		}
		return m, nil
	}, o))
	s.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// commit changes the origin.
func (s *shop) commit(v string) { s.origin.Store(&v) }

// deleted commits another value, and deletes what is cached of the last.
func (s *shop) deleted() {
	s.commit("new value")
	s.must(s.open(s.direct).Delete(s.ctx, k, "another"))
}

// notOld returns what is wrong if something is served that was loaded before the others' Delete: in no process, and nothing of it is
// stored. A lease of nobody's may be left for its second.
func (s *shop) notOld() string {
	if lines := s.holding("old value"); len(lines) > 0 {
		return fmt.Sprintf("what is older than a Delete or Set that returned nil is stored: %q", lines)
	}
	if e, ok, err := s.open(s.direct).Lookup(s.ctx, k); ok && e.Value != "new value" || err != nil && !errors.Is(err, mayfly.ErrNotFound) {
		return fmt.Sprintf("another process finds %q, %v", e.Value, err)
	}
	return s.longLease()
}

// longLease returns what is wrong if there is a lease of nobody's that keeps others waiting for longer than a lease's second.
func (w world) longLease() string {
	w.t.Helper()
	for _, line := range w.holding(`\xc1mfy\x01\x02`) {
		_, end, _ := strings.Cut(line, ", ends ")
		at, err := strconv.ParseInt(end, 10, 64)
		if left := time.Until(time.UnixMilli(at)); err != nil || left > time.Second {
			return fmt.Sprintf("a lease of nobody's is left for %v: %s", left, line)
		}
	}
	return ""
}

// get has the cache behind the proxy get k, and waits for what it does in the background.
func (s *shop) get() error {
	if err := s.value(s.behind.Get(s.ctx, k)); err != nil {
		return err
	}
	return s.behind.Close(s.ctx)
}

func (s *shop) value(v string, err error) error {
	if err == nil && v != "old value" && v != "older value" {
		return fmt.Errorf("it is %q", v)
	}
	return err
}

// always renews at each hit.
type always struct{}

func (always) Due(time.Duration, time.Duration, time.Duration, float64) bool { return true }

func cacheasideRows() (all []row) {
	for _, way := range []struct {
		name  string
		plain bool
	}{{"cacheaside", false}, {"cacheaside Plain", true}} {
		add := func(name string, skip int, opt cacheaside.Options, open func(s *shop) call) {
			all = append(all, row{name: way.name + "/" + name, skip: skip, copies: true, claims: strings.Contains(name, "the claim"), open: func(w world) call {
				s := &shop{world: w, plain: way.plain, opt: opt}
				s.commit("old value")
				s.behind = s.open(w.through)
				warm := s.open(w.direct) // the scripts
				s.must(s.value(warm.Get(w.ctx, k)))
				s.must(warm.Delete(w.ctx, k))
				c := open(s)
				c.about = w.prefix + k
				return c
			}})
		}
		// The ways of a load. What was loaded is not stored after another process committed and deleted.
		loads := func(name string, opt cacheaside.Options, writes []string, prepare func(s *shop), do func(s *shop) error) {
			for skip, write := range writes {
				add(name+", "+write+", then commit and Delete", skip, opt, func(s *shop) call {
					if prepare != nil {
						prepare(s)
					}
					return call{do: func() error { return do(s) }, later: s.deleted, promise: s.notOld}
				})
			}
		}
		get := func(s *shop) error { return s.get() }
		loads("Get", cacheaside.Options{}, []string{"the claim", "the fill"}, nil, get)
		loads("GetMany", cacheaside.Options{}, []string{"the claim", "the fill"}, nil, func(s *shop) error {
			many, err := s.behind.GetMany(s.ctx, []string{k, "another"})
			return errors.Join(s.value(many[k], err), s.behind.Close(s.ctx))
		})
		if !way.plain {
			loads("Get of nothing", cacheaside.Options{MissTTL: time.Minute}, []string{"the claim", "the fill"}, func(s *shop) { s.commit("") }, func(s *shop) error {
				if _, err := s.behind.Get(s.ctx, k); !errors.Is(err, mayfly.ErrNotFound) {
					return err
				}
				return s.behind.Close(s.ctx)
			})
		}
		early := cacheaside.Options{Early: earlyrefresh.Policy(always{})}
		loads("a renewal", early, []string{"the claim", "the fill"}, func(s *shop) {
			s.commit("older value")
			_, err := s.open(s.direct).Get(s.ctx, k)
			s.must(err)
			s.commit("old value")
		}, get)

		// What is set stays until others write. To remove a copy late costs a load, and breaks nothing.
		set := func(s *shop) error { return s.behind.Set(s.ctx, k, "old value") }
		setMany := func(s *shop) error {
			return s.behind.SetMany(s.ctx, map[string]string{k: "old value", "another": "old value"})
		}
		for name, do := range map[string]func(s *shop) error{"Set": set, "SetMany": setMany} {
			add(name+", then commit and Delete", 0, cacheaside.Options{}, func(s *shop) call {
				return call{do: func() error { return do(s) }, later: func() {
					s.commit("new value")
					s.must(s.open(s.direct).Delete(s.ctx, k, "another"))
				}, promise: s.notOld}
			})
			add(name+", then Set", 0, cacheaside.Options{}, func(s *shop) call {
				return call{do: func() error { return do(s) }, later: func() {
					s.must(s.open(s.direct).SetMany(s.ctx, map[string]string{k: "new value", "another": "new value"}))
				}, promise: s.notOld, done: func() int {
					e, ok, err := s.open(s.direct).Lookup(s.ctx, k)
					s.must(err)
					if ok && e.Value == "old value" {
						return 1
					}
					return 0
				}}
			})
		}
		removes := map[string]func(s *shop) error{
			"Delete": func(s *shop) error { return s.behind.Delete(s.ctx, k) },
			"Clear":  func(s *shop) error { return s.behind.Clear(s.ctx) },
		}
		for name, do := range removes {
			open := func(s *shop) call {
				s.commit("older value")
				_, err := s.open(s.direct).Get(s.ctx, k)
				s.must(err)
				s.commit("new value")
				return call{do: func() error { return do(s) }, later: func() {
					_, err := s.open(s.direct).Get(s.ctx, k)
					s.must(err)
				}, done: func() int {
					if _, ok, _ := s.open(s.direct).Lookup(s.ctx, k); ok {
						return 0
					}
					return 1
				}, promise: func() string {
					if lines := s.holding("older value"); len(lines) > 0 {
						return fmt.Sprintf("what was loaded before the Delete is there: %q", lines)
					}
					v, err := s.open(s.direct).Get(s.ctx, k)
					if v != "new value" {
						return fmt.Sprintf("it is %q, %v", v, err)
					}
					return ""
				}}
			}
			add(name+", then Get", 0, cacheaside.Options{}, open)
			if name == "Delete" && !way.plain {
				add(name+" with Hold, then Get", 0, cacheaside.Options{Hold: time.Minute}, open)
			}
		}
	}
	return all
}
