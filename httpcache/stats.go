package httpcache

import "sync/atomic"

// Stats says how requests were answered since the cache was made.
type Stats struct {
	Local     uint64 // fresh, from this process's memory
	Redis     uint64 // fresh, from Redis, or from memory on a longer way
	Stale     uint64 // past its freshness, as that was allowed
	Collapsed uint64 // by what another request had asked the handler for
	Forwarded uint64 // by the handler, for a GET or HEAD that the cache could have answered
	Passed    uint64 // by the handler, as the request was not one for caches
	Stored    uint64 // responses stored
}

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
