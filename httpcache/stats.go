package httpcache

import (
	"sync/atomic"

	"github.com/mayflycache/mayfly/internal/stats"
)

// Stats says how requests were answered since the cache was made: Local, Redis, Stale and Collapsed without asking the handler again,
// Forwarded and Passed by the handler, which the cache could and could not have answered; Stored responses.
type Stats = stats.HTTP

type counters struct {
	local, hits, stale, collapsed, forwarded, passed, stored atomic.Uint64
}

// Stats adds up what happened.
func (c *Cache) Stats() Stats {
	s := c.stats
	return Stats{
		Local: s.local.Load(), Redis: s.hits.Load(), Stale: s.stale.Load(), Collapsed: s.collapsed.Load(),
		Forwarded: s.forwarded.Load(), Passed: s.passed.Load(), Stored: s.stored.Load(),
	}
}
