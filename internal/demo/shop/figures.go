package shop

import (
	"context"
	"fmt"
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

// look is what the figures before were.
type look struct {
	mu      sync.Mutex // guards what follows
	at      time.Time
	hits    hits
	state   panel.State
	stateAt time.Time
}

// Figures returns what happened since it was last called. It is meant for a single caller that polls.
func (s *Shop) Figures(ctx context.Context) panel.Figures {
	s.look.mu.Lock()
	defer s.look.mu.Unlock()
	now := time.Now()
	f := panel.Figures{
		Pages: s.pages.Swap(0), Failed: s.failed.Swap(0), Rendered: s.rendered.Swap(0),
		FromRedis: s.redisReads.Swap(0), FromDatabase: s.waited.Swap(0),
		Carts: s.carts.Swap(0), Lost: s.lost.Swap(0), Unavailable: s.unavailable.Swap(0),
		Redis: s.line.is(),
	}
	f.Queries, f.Worst = s.database.figures()
	f.Answered, f.GivenUp, f.Loads = s.catalogue.figures(now)
	s.mu.Lock()
	hits := s.retired
	for _, p := range s.processes {
		hits = hits.and(p)
	}
	settings := s.settings
	s.mu.Unlock()
	f.FromPages = max(0, hits.pages-s.look.hits.pages)
	f.FromLocal = max(0, hits.local-s.look.hits.local)
	f.FromRedis += max(0, hits.redisPages-s.look.hits.redisPages)
	s.look.hits = hits
	f.P50, f.P99 = s.took.since(now.Add(-lately))
	if !s.look.at.IsZero() {
		f.For = now.Sub(s.look.at)
	}
	s.look.at = now
	if now.Sub(s.look.stateAt) >= lookEvery {
		s.look.state, s.look.stateAt = s.state(ctx, settings, now), now
	}
	f.State = s.look.state
	return f
}

// state looks at what Redis holds: not over the line, so that it sees what the shop does not.
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
	st.Together, st.Kept = together(ttls, set.TTL/20)
	st.Addresses = s.keptTooLong(ctx, now)
	return st
}

// together returns how many of the keys end within so short a time, at most, and how many there are.
func together(ttls []*redis.DurationCmd, within time.Duration) (most, all int) {
	for _, first := range ttls {
		if first.Val() <= 0 {
			continue
		}
		all++
		n := 0
		for _, other := range ttls {
			if d := other.Val() - first.Val(); d >= 0 && d <= within {
				n++
			}
		}
		most = max(most, n)
	}
	return most, all
}

// keptTooLong returns how many of the shoppers' addresses are known longer than they should be: it asks about a hundred at most.
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
	p.Exec(ctx) // an answer that is missing counts as "not held"
	for _, h := range held {
		if h.Val() {
			n++
		}
	}
	return n
}
