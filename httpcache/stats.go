package httpcache

import (
	"sync/atomic"

	"github.com/mayflycache/mayfly"
)

type counters struct {
	local, hits, stale, collapsed, forwarded, passed, stored atomic.Uint64
}

// Stats counts how requests were answered since the cache was made.
func (c *Cache) Stats() mayfly.HTTPStats {
	s := c.stats
	return mayfly.HTTPStats{
		Local: s.local.Load(), Redis: s.hits.Load(), Stale: s.stale.Load(), Collapsed: s.collapsed.Load(),
		Forwarded: s.forwarded.Load(), Passed: s.passed.Load(), Stored: s.stored.Load(),
	}
}
