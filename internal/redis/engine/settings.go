package engine

import (
	"cmp"
	"slices"
)

// settings are what CONFIG SET changes and a running command asks. The thresholds of the data structures are in Engine.limits.
type settings struct {
	password                   string            // of the user "default"
	users                      map[string]string // the passwords of others
	masterUser, masterPassword string            // masteruser, masterauth: what a master is told
	notify                     notifyClass       // notify-keyspace-events
	maxMemory                  int64             // set by limitMemory
	policy                     policy            // maxmemory-policy
	samples                    int               // maxmemory-samples
	maxBulk                    int64             // proto-max-bulk-len
	hz                         int
	effort                     int  // active-expire-effort
	lazyExpire                 bool // lazyfree-lazy-expire: an expiry is recorded as UNLINK
	lfuLogFactor               int
	lfuDecayTime               int   // minutes
	trackingKeys               int   // tracking-table-max-keys; 0: no limit
	protected                  bool  // protected-mode
	busyAfter                  int64 // busy-reply-threshold: milliseconds that a script may take; 0: as long as it likes
}

// locked reports whether connections must authenticate.
func (s *settings) locked() bool { return s.password != "" || len(s.users) > 0 }

func defaultSettings(o Options) settings {
	evict := noEviction
	if at := slices.Index(Policies, o.Policy); at >= 0 {
		evict = policy(at)
	}
	return settings{
		password:     o.Password,
		maxMemory:    o.MaxMemory,
		policy:       evict,
		samples:      5,
		maxBulk:      512 << 20,
		hz:           cmp.Or(o.Hz, 10),
		effort:       1,
		lfuLogFactor: 10,
		lfuDecayTime: 1,
		protected:    o.Protected,
		trackingKeys: 1_000_000,
		busyAfter:    5000,
	}
}
