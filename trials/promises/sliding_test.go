package promises

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/sliding"
)

// busy is the RedisTimeout of rows on a machine that is busy.
const busy = time.Second

type carts = sliding.Store[string, string]

// cartAct is a call of a store, and what others do after it to the same keys.
type cartAct struct {
	name, then string
	before     func(ctx context.Context, others *carts) error // the call
	do         func(ctx context.Context, s *carts) error
	later      func(ctx context.Context, others *carts) error

	about  string // the key of the write in question, and how many of the call's writes of it come before
	skip   int
	done   func(ctx context.Context, others *carts) int
	own    bool // it is about a value with a life of its own
	renews bool // it may give a value more time, later, but neither bring it back nor change it
}

const k = "k"

// is counts an act as done if the key holds what, or nothing if that is empty.
func is(key, what string) func(ctx context.Context, others *carts) int {
	return func(ctx context.Context, others *carts) int {
		if v, err := others.Peek(ctx, key); v == what && (err == nil || what == "" && errors.Is(err, mayfly.ErrNotFound)) {
			return 1
		}
		return 0
	}
}

func cartActs() []cartAct {
	there := func(ctx context.Context, others *carts) error { return others.Create(ctx, k, "before") }

	logout := func(ctx context.Context, others *carts) error { return others.Delete(ctx, k) }
	become := func(what string) func(ctx context.Context, others *carts) error {
		return func(ctx context.Context, others *carts) error { return others.Set(ctx, k, what) }
	}
	anew := func(what string) func(ctx context.Context, others *carts) error {
		return func(ctx context.Context, others *carts) error {
			return errors.Join(others.Delete(ctx, k), others.Create(ctx, k, what))
		}
	}
	create := func(ctx context.Context, s *carts) error { return s.Create(ctx, k, "mine") }
	set := func(ctx context.Context, s *carts) error { return s.Set(ctx, k, "mine") }
	update := func(ctx context.Context, s *carts) error {
		_, err := s.Update(ctx, k, func(v string) (string, error) { return v + "+1", nil })
		return err
	}
	updates := func(ctx context.Context, others *carts) int {
		v, _ := others.Peek(ctx, k)
		return (len(v) - len("before")) / len("+1")
	}
	remove := func(ctx context.Context, s *carts) error { return s.Delete(ctx, k) }
	rotate := func(ctx context.Context, s *carts) error { return s.Rotate(ctx, k, "to") }
	get := func(ctx context.Context, s *carts) error {
		v, err := s.Get(ctx, k)
		if err == nil && v != "before" {
			return fmt.Errorf("it is %q", v)
		}
		return err
	}
	touch := func(ctx context.Context, s *carts) error { return s.Touch(ctx, k) }
	return []cartAct{
		{name: "Create", then: "Delete", do: create, later: logout, done: is(k, "mine")},
		{name: "CreateFor", then: "Delete", own: true, later: logout, done: is(k, "mine"),
			do: func(ctx context.Context, s *carts) error { return s.CreateFor(ctx, k, "mine", ownLife) }},
		{name: "SetFor", then: "Delete", own: true, before: there, later: logout, done: is(k, "mine"),
			do: func(ctx context.Context, s *carts) error { return s.SetFor(ctx, k, "mine", ownLife) }},
		{name: "SetFor", then: "Set", own: true, before: there, later: become("another"), done: is(k, "mine"),
			do: func(ctx context.Context, s *carts) error { return s.SetFor(ctx, k, "mine", ownLife) }},
		{name: "Create", then: "Set", do: create, later: become("another"), done: is(k, "mine")},
		{name: "Set", then: "Set", before: there, do: set, later: become("another"), done: is(k, "mine")},
		{name: "Set", then: "Delete", before: there, do: set, later: logout, done: is(k, "mine")},
		{name: "Set", then: "Delete and Create", before: there, do: set, later: anew("another"), done: is(k, "mine")},
		{name: "Update", then: "Set", before: there, do: update, later: become("another"), done: updates},
		{name: "Update", then: "Set to what it was", before: there, do: update, later: become("before"), done: updates},
		{name: "Update", then: "Delete", before: there, do: update, later: logout, done: updates},
		{name: "Delete", then: "Create", before: there, do: remove, later: anew("another"), done: is(k, "")},
		{name: "Delete", then: "Create of the same", before: there, do: remove, later: anew("before"), done: is(k, "")},
		{name: "Rotate, the new key", then: "Delete", before: there, do: rotate, about: "to", done: is("to", "before"),
			later: func(ctx context.Context, others *carts) error { return others.Delete(ctx, "to") }},
		{name: "Rotate, the new key", then: "Set", before: there, do: rotate, about: "to", done: is("to", "before"),
			later: func(ctx context.Context, others *carts) error { return others.Set(ctx, "to", "another") }},
		{name: "Rotate, the old key", then: "Create", before: there, do: rotate, about: k, skip: 1, done: is(k, ""), later: anew("another")},
		{name: "Rotate, the old key", then: "Create of the same", before: there, do: rotate, about: k, skip: 1, done: is(k, ""), later: anew("before")},
		{name: "Touch", then: "Delete", before: there, do: touch, later: logout, renews: true},
		{name: "Touch", then: "Delete and Create", before: there, do: touch, later: anew("another"), renews: true},
		{name: "Get", then: "Delete", before: there, do: get, later: logout, renews: true},
		{name: "Get", then: "Delete and Create", before: there, do: get, later: anew("another"), renews: true},
	}
}

var ownLife = sliding.Life{TTL: 48 * time.Hour}

func slidingRows() (all []row) {
	for _, way := range []struct {
		name  string
		plain bool
		most  time.Duration
		opt   sliding.Options
	}{
		{name: "sliding"},
		{"sliding with MaxAge", false, 0, sliding.Options{MaxAge: 24 * time.Hour}},
		{"sliding with MaxTTL", false, 72 * time.Hour, sliding.Options{}},
		{"sliding Plain", true, 0, sliding.Options{}},
		{"sliding Atomic", false, 0, sliding.Options{Atomic: true}},
		{"sliding with TouchBelow", false, 0, sliding.Options{TouchBelow: 0.9}},
	} {
		open := func(w world, rdb redis.UniversalClient) *carts {
			ns := mayfly.Namespace[string, string]{Name: "carts", Redis: rdb, Prefix: w.prefix, TTL: time.Hour, MaxTTL: way.most, Plain: way.plain}
			o := way.opt
			o.RedisTimeout = busy
			return mayfly.Must(sliding.New(ns, o))
		}
		for _, act := range cartActs() {
			if (way.opt.Atomic || way.opt.TouchBelow > 0) && act.name != "Get" {
				continue // they differ in reading
			}
			if act.own && way.most == 0 {
				continue
			}
			if act.skip > 0 && way.opt.MaxAge == 0 && way.most == 0 {
				act.skip = 0 // there a script reads what is to be moved
			}
			all = append(all, row{name: way.name + "/" + act.name + ", then " + act.then, skip: act.skip, unknown: !act.renews, open: func(w world) call {
				s, others := open(w, w.through), open(w, w.direct)
				warm(w, others)
				if act.before != nil {
					w.must(act.before(w.ctx, others))
				}
				if way.opt.TouchBelow > 0 { // little is left, so a Get renews
					w.must(w.direct.PExpire(w.ctx, w.prefix+k, time.Minute).Err())
				}
				c := call{
					do:    func() error { return act.do(w.ctx, s) },
					later: func() { w.must(act.later(w.ctx, others)) },
				}
				if act.done != nil {
					c.done = func() int { return act.done(w.ctx, others) }
				}
				if act.about != "" {
					c.about = w.prefix + act.about
				}
				if act.renews {
					var was []string
					c.later = func() { w.must(act.later(w.ctx, others)); was = withoutEnds(w.state()) }
					c.promise = func() string { return changes(was, withoutEnds(w.state())) }
				}
				return c
			}})
		}
	}
	return all
}

// warm makes the servers of the keys know the scripts.
func warm(w world, s *carts) {
	w.t.Helper()
	w.must(s.Create(w.ctx, k, ""))
	w.must(s.Set(w.ctx, k, ""))
	_, err := s.Get(w.ctx, k)
	w.must(err)
	w.must(s.Touch(w.ctx, k))
	_, err = s.Update(w.ctx, k, func(v string) (string, error) { return v, nil })
	w.must(err)
	w.must(s.Rotate(w.ctx, k, "to"))
	w.must(s.Delete(w.ctx, "to"))
}

// limiterRows count calls in windows of both kinds, and as one of several limits. What shares promise is tested where they are: a share whose reply was
// lost counts until it is given back.
func limiterRows() (all []row) {
	type limiter = *sliding.Limiter[string]
	alone := func(w world, l limiter, key string, n int) (sliding.Decision, error) { return l.Allow(w.ctx, key, n) }
	together := func(w world, l limiter, key string, n int) (sliding.Decision, error) {
		_, each, err := sliding.AllowAll(w.ctx, l.Ask(key, n))
		return each[0], err
	}
	for name, v := range map[string]struct {
		o     sliding.LimiterOptions
		allow func(w world, l limiter, key string, n int) (sliding.Decision, error)
	}{
		"Allow, fixed":   {sliding.LimiterOptions{Limit: 100}, alone},
		"Allow, sliding": {sliding.LimiterOptions{Limit: 100, Sliding: true}, alone},
		"AllowAll":       {sliding.LimiterOptions{Limit: 100}, together},
	} {
		open := func(w world, rdb redis.UniversalClient) limiter {
			ns := mayfly.Namespace[string, int64]{Name: "limit", Redis: rdb, Prefix: w.prefix, TTL: time.Hour}
			o := v.o
			o.RedisTimeout = busy
			return mayfly.Must(sliding.NewLimiter(ns, o))
		}
		all = append(all, row{name: "Limiter/" + name, unknown: true, open: func(w world) call {
			l, others := open(w, w.through), open(w, w.direct)
			allow := func(l limiter, key string, n int) (sliding.Decision, error) { return v.allow(w, l, key, n) }
			_, err := allow(others, "warm", 1)
			w.must(err)
			return call{
				about: w.prefix + k,
				do:    func() error { _, err := allow(l, k, 1); return err },
				later: func() { _, err := allow(others, k, 1); w.must(err) },
				done: func() int {
					d, err := allow(others, k, 0)
					w.must(err)
					return d.Limit - d.Remaining
				},
			}
		}})
	}
	return all
}
