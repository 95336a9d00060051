package promises

import (
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/navsession"
)

func navsessionRows() []row {
	visits := func(w world, rdb redis.UniversalClient) *navsession.Visits[string, string] {
		ns := mayfly.Namespace[string, string]{Name: "visits", Redis: rdb, Prefix: w.prefix, TTL: time.Minute}
		return mayfly.Must(navsession.New(ns, navsession.Options{Pages: 20, RedisTimeout: busy}))
	}
	counter := func(w world, rdb redis.UniversalClient) *navsession.Counter[string] {
		ns := mayfly.Namespace[string, int64]{Name: "views", Redis: rdb, Prefix: w.prefix, TTL: time.Minute}
		return mayfly.Must(navsession.NewCounter(ns, navsession.CounterOptions{RedisTimeout: busy}))
	}
	related := func(w world, rdb redis.UniversalClient) *navsession.Related[string] {
		ns := mayfly.Namespace[string, string]{Name: "related", Redis: rdb, Prefix: w.prefix, TTL: time.Hour}
		return mayfly.Must(navsession.NewRelated(ns, navsession.RelatedOptions{RedisTimeout: busy}))
	}
	record := func(name string, first bool, later func(w world, others *navsession.Visits[string, string])) row {
		return row{name: "navsession/" + name, unknown: true, open: func(w world) call {
			v, others := visits(w, w.through), visits(w, w.direct)
			if !first {
				w.must(v.Record(w.ctx, k, "before")) // and so the next need not ask
			}
			return call{
				about: w.prefix + k,
				do:    func() error { return v.Record(w.ctx, k, "mine") },
				done: func() int {
					pages, err := others.Recent(w.ctx, k, 100)
					w.must(err)
					return strings.Count(strings.Join(pages, " "), "mine")
				},
				later: func() { later(w, others) },
			}
		}}
	}
	another := func(w world, others *navsession.Visits[string, string]) { w.must(others.Record(w.ctx, k, "another")) }
	end := func(w world, others *navsession.Visits[string, string]) { w.must(others.End(w.ctx, k)) }
	return []row{
		record("Record of the first page, then Record", true, another),
		record("Record of the first page, then End", true, end),
		record("Record, then Record", false, another),
		record("Record, then End", false, end),
		{name: "navsession/End, then Record", unknown: true, open: func(w world) call {
			v, others := visits(w, w.through), visits(w, w.direct)
			w.must(others.Record(w.ctx, k, "before"))
			return call{
				about: w.prefix + k,
				do:    func() error { return v.End(w.ctx, k) },
				done: func() int {
					n, err := others.Len(w.ctx, k)
					w.must(err)
					return 1 - n
				},
				later: func() { another(w, others) },
			}
		}},
		{name: "navsession/Counter.Record, then Record", unknown: true, open: func(w world) call {
			c, others := counter(w, w.through), counter(w, w.direct)
			return call{
				about: w.prefix + k,
				do:    func() error { _, err := c.Record(w.ctx, k); return err },
				done: func() int {
					n, err := others.Len(w.ctx, k)
					w.must(err)
					return int(n)
				},
				later: func() { _, err := others.Record(w.ctx, k); w.must(err) },
			}
		}},
		{name: "navsession/Counter.Record, then End", unknown: true, open: func(w world) call {
			c, others := counter(w, w.through), counter(w, w.direct)
			return call{
				about: w.prefix + k,
				do:    func() error { _, err := c.Record(w.ctx, k); return err },
				later: func() { w.must(others.End(w.ctx, k)) },
			}
		}},
		{name: "navsession/Counter.End, then Record", unknown: true, open: func(w world) call {
			c, others := counter(w, w.through), counter(w, w.direct)
			record := func() { _, err := others.Record(w.ctx, k); w.must(err) }
			record()
			return call{about: w.prefix + k, do: func() error { return c.End(w.ctx, k) }, later: record}
		}},
		{name: "navsession/Related.Record, then Record", unknown: true, open: func(w world) call {
			r, others := related(w, w.through), related(w, w.direct)
			return call{
				about: w.prefix + k,
				do:    func() error { return r.Record(w.ctx, k, "other") },
				done: func() int {
					n, err := w.direct.ZScore(w.ctx, w.prefix+k, "other").Result()
					w.must(err)
					return int(n)
				},
				later: func() { w.must(others.Record(w.ctx, k, "another")) },
			}
		}},
	}
}
