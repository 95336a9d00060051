package promises

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
)

// visit has a field that must end, and one that lives as long as the key.
type visit struct {
	User string `redis:"user"`
	IP   string `redis:"ip,ttl=10m"`
}

type hashes = fieldttl.Store[string, visit]

func fieldttlRows() (all []row) {
	open := func(w world, rdb redis.UniversalClient) *hashes {
		return mayfly.Must(fieldttl.New(mayfly.Namespace[string, visit]{Name: "visits", Redis: rdb, Prefix: w.prefix, TTL: time.Hour}, fieldttl.Options{RedisTimeout: busy}))
	}
	before, mine, another := visit{"before", "1.1.1.1"}, visit{"mine", "2.2.2.2"}, visit{"another", "3.3.3.3"}
	is := func(want visit) func(ctx context.Context, others *hashes) bool {
		return func(ctx context.Context, others *hashes) bool {
			e, err := others.Get(ctx, k)
			return e.Value == want && (err == nil || errors.Is(err, mayfly.ErrNotFound))
		}
	}
	// life counts as done if the field, or the key for "", has so long to live.
	life := func(field string, least, most time.Duration) func(ctx context.Context, others *hashes) bool {
		return func(ctx context.Context, others *hashes) bool {
			left, fields, _ := others.TTLs(ctx, k)
			if field != "" {
				left = fields[field]
			}
			return least < left && left <= most
		}
	}
	type do = func(ctx context.Context, s *hashes) error
	set := func(v visit) do { return func(ctx context.Context, s *hashes) error { return s.Set(ctx, k, v) } }
	field := func(v visit) do {
		return func(ctx context.Context, s *hashes) error { return s.SetFields(ctx, k, v, "ip") }
	}
	remove := func(ctx context.Context, s *hashes) error { return s.Delete(ctx, k) }
	removeField := func(ctx context.Context, s *hashes) error { return s.DeleteFields(ctx, k, "ip") }
	persist := func(ctx context.Context, s *hashes) error { return s.PersistFields(ctx, k, "ip") }
	touch := func(ctx context.Context, s *hashes) error { return s.TouchFields(ctx, k, "ip") }
	getAndTouch := func(ctx context.Context, s *hashes) error { _, err := s.GetAndTouchFields(ctx, k, "ip"); return err }
	renew := func(ctx context.Context, s *hashes) error { return s.Touch(ctx, k) }
	anew := func(ctx context.Context, s *hashes) error { return errors.Join(remove(ctx, s), set(another)(ctx, s)) }
	ended := before
	ended.IP = ""
	for _, act := range []struct {
		name      string
		do, later do
		done      func(ctx context.Context, others *hashes) bool
		renews    bool // it may give more time, later
	}{
		{name: "Set, then Set", do: set(mine), later: set(another), done: is(mine)},
		{name: "Set, then Delete", do: set(mine), later: remove, done: is(mine)},
		{name: "SetFields, then SetFields", do: field(mine), later: field(another), done: is(visit{"before", mine.IP})},
		{name: "SetFields, then DeleteFields", do: field(mine), later: removeField, done: is(visit{"before", mine.IP})},
		{name: "SetFields, then PersistFields", do: field(mine), later: persist, done: is(visit{"before", mine.IP})},
		{name: "Delete, then Set", do: remove, later: set(another), done: is(visit{})},
		{name: "DeleteFields, then SetFields", do: removeField, later: field(another), done: is(ended)},
		{name: "PersistFields, then SetFields", do: persist, later: field(another), done: life("ip", 30*time.Minute, time.Hour)},
		{name: "PersistFields, then TouchFields", do: persist, later: touch, done: life("ip", 30*time.Minute, time.Hour)},
		{name: "TouchFields, then PersistFields", do: touch, later: persist, done: life("ip", 5*time.Minute, 10*time.Minute)},
		{name: "TouchFields, then Delete and Set", do: touch, later: anew, renews: true},
		{name: "GetAndTouchFields, then PersistFields", do: getAndTouch, later: persist, done: life("ip", 5*time.Minute, 10*time.Minute)},
		{name: "GetAndTouchFields, then Delete and Set", do: getAndTouch, later: anew, renews: true},
		{name: "Touch, then Delete", do: renew, later: remove, done: life("", 30*time.Minute, time.Hour)},
		{name: "Touch, then Delete and Set", do: renew, later: anew, renews: true},
	} {
		all = append(all, row{name: "fieldttl/" + act.name, unknown: true, open: func(w world) call {
			s, others := open(w, w.through), open(w, w.direct)
			if _, err := s.Get(w.ctx, "none"); !errors.Is(err, mayfly.ErrNotFound) { // it knows the server now
				w.must(err)
			}
			w.must(others.Set(w.ctx, k, before))
			c := call{
				about: w.prefix + k,
				do:    func() error { return act.do(w.ctx, s) },
				later: func() { w.must(act.later(w.ctx, others)) },
			}
			if act.done != nil {
				c.done = func() int {
					if act.done(w.ctx, others) {
						return 1
					}
					return 0
				}
			}
			if act.renews {
				var was []string
				c.later = func() { w.must(act.later(w.ctx, others)); was = withoutEnds(w.state()) }
				c.promise = func() string { return changes(was, withoutEnds(w.state())) }
			}
			return c
		}})
	}
	return all
}
