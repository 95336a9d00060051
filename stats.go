package mayfly

import "time"

// EngineStats say what an embedded database holds, and what it has done since it was opened: DB.Stats of package embedded.
type EngineStats struct {
	Keys, Expires int           // keys, and those with a TTL, dead ones included
	Dead          int           // of Expires: over, and not yet removed; nobody sees them
	Memory        int64         // bytes that the data takes, counted as for MaxMemory
	Expired       int64         // keys removed because they were over
	Evicted       int64         // keys removed for want of memory
	Commands      int64         // processed
	Hits, Misses  int64         // of reads
	Cycle         time.Duration // spent on removing keys that are over, without anybody asking for them
}

// HTTPStats say how an HTTP cache answered requests since it was made: Cache.Stats of package httpcache.
type HTTPStats struct {
	Local     uint64 // fresh, from this process's memory
	Redis     uint64 // fresh, from Redis, or from memory on a longer way
	Stale     uint64 // past its freshness, as that was allowed
	Collapsed uint64 // by what another request had asked the handler for
	Forwarded uint64 // by the handler, for a GET or HEAD that the cache could have answered
	Passed    uint64 // by the handler, as the request was not one for caches
	Stored    uint64 // responses stored
}
