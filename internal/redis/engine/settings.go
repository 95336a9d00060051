package engine

import (
	"cmp"
	"slices"
)

// settings can be changed by CONFIG SET and are consulted by running commands. The thresholds of the data structures are in Engine.limits.
type settings struct {
	password                   string            // of the user "default"
	users                      map[string]string // passwords of the other users, by name
	masterUser, masterPassword string            // masteruser, masterauth: how to log in at a master
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
	busyAfter                  int64 // busy-reply-threshold: milliseconds that a script may take; 0: unlimited
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
