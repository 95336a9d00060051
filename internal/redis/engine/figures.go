package engine

// Figures say what an engine holds and what it has done so far.
type Figures struct {
	Keys, Expires int   // keys, and those with a deadline, dead ones included
	Dead          int   // of Expires: past their deadline, not yet removed
	Memory        int64 // bytes of the data, as maxmemory counts them
	Expired       int64 // keys removed because they expired
	Evicted       int64 // keys removed to stay within maxmemory
	Commands      int64 // processed
	Hits, Misses  int64 // of reads
	Connected     int   // open connections
	Connections   int64 // accepted since the start
}

// Figures returns the figures at now, in unix microseconds.
func (e *Engine) Figures(now int64) Figures {
	s := &e.stats
	f := Figures{
		Memory: e.weight(), Connected: len(e.sessions), Connections: s.connections,
		Expired: s.expiredKeys, Evicted: s.evictedKeys, Commands: s.commands, Hits: s.hits, Misses: s.misses,
	}
	for _, d := range e.dbs {
		of := d.deadlines.Figures(now / 1000)
		f.Keys += d.len()
		f.Expires += of.Held
		f.Dead += of.Dead
	}
	return f
}
