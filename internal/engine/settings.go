package engine

// settings are what CONFIG SET changes and a running command asks. The thresholds of the data structures are in Engine.limits.
type settings struct {
	password     string
	notify       notifyClass // notify-keyspace-events
	maxMemory    int64
	policy       policy // maxmemory-policy
	maxBulk      int64  // proto-max-bulk-len
	hz           int
	effort       int  // active-expire-effort
	lazyExpire   bool // lazyfree-lazy-expire: an expiry is recorded as UNLINK
	lfuLogFactor int
	lfuDecayTime int // minutes
	trackingKeys int // tracking-table-max-keys; 0: no limit
}

func defaultSettings(o Options) settings {
	return settings{
		password:     o.Password,
		maxMemory:    o.MaxMemory,
		maxBulk:      512 << 20,
		hz:           10,
		effort:       1,
		lfuLogFactor: 10,
		lfuDecayTime: 1,
		trackingKeys: 1_000_000,
	}
}

// policy says which keys make room for others.
type policy uint8

// The policies, in the order in which Redis lists them.
const (
	noEviction policy = iota
	volatileLRU
	volatileLFU
	volatileRandom
	volatileTTL
	allKeysLRU
	allKeysLFU
	allKeysRandom
)

// lfu reports whether objects carry a frequency instead of the time of their last use.
func (p policy) lfu() bool { return p == volatileLFU || p == allKeysLFU }

// ages reports whether the policy goes by the use of each key, which must then have a record of its own.
func (p policy) ages() bool { return p.lfu() || p == volatileLRU || p == allKeysLRU }
