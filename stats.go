package mayfly

import "time"

// EngineStats say what an embedded database holds, and what it has done since it was opened: DB.Stats of package embedded.
type EngineStats struct {
	Keys, Expires int           // keys, and those with a TTL, dead ones included
	Dead          int           // of Expires: expired but not yet removed; no client sees them
	Memory        int64         // bytes that the data takes, counted as for MaxMemory
	Expired       int64         // keys removed because they expired
	Evicted       int64         // keys removed to free memory
	Commands      int64         // processed
	Hits, Misses  int64         // of reads
	Cycle         time.Duration // time spent on removing expired keys in the background
}

// HTTPStats say how an HTTP cache answered requests since it was made: Cache.Stats of package httpcache.
type HTTPStats struct {
	Local     uint64 // fresh, from this process's memory
	Redis     uint64 // fresh, from Redis, or from memory on the slow path
	Stale     uint64 // past its freshness, where allowed
	Collapsed uint64 // by the handler's answer to another request
	Forwarded uint64 // by the handler, for a GET or HEAD that the cache could have answered
	Passed    uint64 // by the handler: the request was not one for caches
	Stored    uint64 // responses stored
}
