package shop

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

const (
	lookEvery = 500 * time.Millisecond
	lately    = time.Second // of percentiles
)

// look is the state between two calls of Figures.
type look struct {
	mu      sync.Mutex // guards the fields below
	at      time.Time
	lately  []tookAt // the latest ones, oldest first
	state   panel.State
	stateAt time.Time
}

// tookAt is how long the pages took that were served until some moment.
type tookAt struct {
	at   time.Time
	took panel.Took
}

// percentiles returns how long the recent pages took, including those just served.
func (l *look) percentiles(now time.Time, just panel.Took) (p50, p99 time.Duration) {
	l.lately = append(slices.DeleteFunc(l.lately, func(t tookAt) bool { return now.Sub(t.at) >= lately }), tookAt{now, just})
	all := make(panel.Took)
	for _, t := range l.lately {
		all.AddAll(t.took)
	}
	return all.At(0.50), all.At(0.99)
}

// Figures returns what happened since its last call. It is meant for a single caller that polls.
func (s *Shop) Figures(ctx context.Context) panel.Figures {
	s.look.mu.Lock()
	defer s.look.mu.Unlock()
	now := time.Now()
	f := panel.Figures{
		Got: s.got.take(), Rendered: s.rendered.Swap(0), Took: s.took.take(),
		Carts: s.carts.Swap(0), Lost: s.lost.Swap(0), Unavailable: s.unavailable.Swap(0),
		Redis: s.line.is(), Slow: s.database.slowFor(now),
	}
	f.Pages = f.FromMemory + f.FromRedis + f.Stale + f.Waited + f.Failed
	f.P50, f.P99 = s.look.percentiles(now, f.Took)
	f.Queries, f.Worst = s.database.figures()
	f.Answered, f.GivenUp, f.Loads = s.catalogue.figures(now)
	if !s.look.at.IsZero() {
		f.For = now.Sub(s.look.at)
	}
	s.look.at = now
	if now.Sub(s.look.stateAt) >= lookEvery {
		s.look.state, s.look.stateAt = s.state(ctx, s.Settings(), now), now
	}
	f.State = s.look.state
	return f
}

// state reads what is in Redis. It does not use the breakable line, so that it sees what the shop cannot.
func (s *Shop) state(ctx context.Context, set panel.Settings, now time.Time) (st panel.State) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	st = s.look.state
	ttls := make([]*redis.DurationCmd, products)
	p := s.watcher.Pipeline()
	keyspace, stats := p.InfoMap(ctx, "keyspace"), p.InfoMap(ctx, "stats")
	for id := range ttls {
		ttls[id] = p.PTTL(ctx, productPrefix(set)+strconv.Itoa(id))
	}
	if _, err := p.Exec(ctx); err != nil {
		return st
	}
	var keys, expires int
	fmt.Sscanf(keyspace.Item("Keyspace", fmt.Sprint("db", s.opt.Redis.DB)), "keys=%d,expires=%d", &keys, &expires)
	st.Keys, st.Endless = keys, keys-expires
	fmt.Sscanf(stats.Item("Stats", "expired_stale_perc"), "%f", &st.Dead)
	st.Ends = nil
	for _, ttl := range ttls {
		if ttl.Val() > 0 {
			st.Ends = append(st.Ends, ttl.Val().Milliseconds())
		}
	}
	st.Together = together(st.Ends, (set.TTL / 20).Milliseconds())
	st.Addresses = s.keptTooLong(ctx, now)
	return st
}

// together returns the greatest number of ends within this time.
func together(ends []int64, within int64) (most int) {
	for _, first := range ends {
		n := 0
		for _, other := range ends {
			if d := other - first; d >= 0 && d <= within {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// keptTooLong returns how many of the shoppers' addresses are known longer than they should be: it checks at most a hundred.
func (s *Shop) keptTooLong(ctx context.Context, now time.Time) (n int) {
	const most, grace = 100, time.Second
	var due []string
	s.addresses.Range(func(shopper, at any) bool {
		if now.Sub(at.(time.Time)) > addressLives+grace {
			due = append(due, shopper.(string))
		}
		return len(due) < most
	})
	held := make([]*redis.BoolCmd, len(due))
	p := s.watcher.Pipeline()
	for i, shopper := range due {
		held[i] = p.HExists(ctx, loginPrefix+shopper, "ip")
	}
	p.Exec(ctx) // a missing answer counts as "not held"
	for _, h := range held {
		if h.Val() {
			n++
		}
	}
	return n
}
