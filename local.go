package mayfly

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/internal/client/localsync"
)

// LocalOptions set up a [Local]. Redis and Prefixes are required, and so is a bound, MaxBytes or MaxEntries.
type LocalOptions struct {
	// Redis is the client of the namespaces: a redis.Client (Sentinel included) or a redis.ClusterClient. The tier opens
	// connections of its own beside the client's pool, one per master.
	Redis redis.UniversalClient

	// Prefixes say which keys may be copied: for each namespace its Prefix, or the beginning of it. Redis reports every change
	// of a key under them, so choose prefixes that few other keys share. None may be the beginning of another.
	Prefixes []string

	// MaxBytes bounds the memory of all copies together, keys and bookkeeping included; Namespace.Cost tells the size of a
	// value. Zero is no bound.
	MaxBytes int64

	// MaxEntries bounds the number of copies. Zero is no bound.
	MaxEntries int

	// MaxTTL bounds the age of a copy by this process's monotonic clock, whatever time Redis says is left: it covers a Redis clock
	// that was set back, and changes that are never reported, such as SWAPDB. Zero keeps it as long as Redis keeps the value.
	MaxTTL time.Duration

	// Silence is how long copies are served after Redis was last heard: the most that a copy can be behind if the network
	// fails silently. Redis is asked four times in that time. At least 100 ms; zero is 2 s.
	Silence time.Duration

	// ShortTTL bounds the age of a copy if Redis allows no way to hear of changes (the rung "short_ttl": see [LocalStats]). Zero is 1 s; negative
	// keeps no copies in that case.
	ShortTTL time.Duration

	// Outage is how long copies are still served when Redis cannot be heard any more, each within its own TTL, so that an outage
	// of Redis does not empty the tier when it is needed most. They may be out of date by Outage plus Silence, except that this process
	// never serves what it has changed itself. When Redis is heard again all copies are dropped. Outage applies to all namespaces of the
	// tier: do not set it if sessions are among them, since one that was ended elsewhere would live on. Zero serves none.
	Outage time.Duration

	// Observer sees an Event of Kind [KindCoherence] at each change of the rung, whose Outcome is the rung (see [LocalStats]) and whose Err
	// is the cause, and another when the rung stays "off" because Redis now refuses writes. It sees one of Kind [KindLag] at each
	// measurement. Nil costs nothing.
	Observer Observer
}

// Local is a tier of copies in this process's memory, in front of Redis, and kept in step with it. One serves many
// namespaces, within one budget; each names it as its Local. It is safe for concurrent use. Close it after the caches.
//
// FLUSHALL, and FLUSHDB of any database, drop all copies. Redis tells nobody of SWAPDB: copies then live to their ends, unless a
// FLUSHDB of an empty database follows.
type Local struct{ local *localsync.Local }

// OpenLocal opens a tier of local copies. It connects, and returns when it hears Redis or found that it cannot, or when
// ctx ends. A Redis that cannot be reached is no error: nothing local is served until it can be. Errors are about o.
func OpenLocal(ctx context.Context, o LocalOptions) (*Local, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("mayfly: %w", err)
	}
	co := localsync.Options{
		Redis: o.Redis, Prefixes: o.Prefixes, MaxBytes: o.MaxBytes, MaxEntries: o.MaxEntries,
		MaxTTL: o.MaxTTL, Silence: cmp.Or(o.Silence, 2*time.Second), ShortTTL: cmp.Or(o.ShortTTL, time.Second), Outage: o.Outage,
	}
	if o.Observer != nil {
		prefixes := strings.Join(o.Prefixes, " ")
		co.RungChanged = func(to localsync.Rung, why error) {
			o.Observer.Observe(context.Background(), Event{Kind: KindCoherence, Outcome: Outcome(to.String()), Key: prefixes, Err: why})
		}
		co.Lag = func(took time.Duration) {
			o.Observer.Observe(context.Background(), Event{Kind: KindLag, Outcome: OutcomeOK, Key: prefixes, Took: took})
		}
	}
	t, err := localsync.Open(ctx, co)
	if err != nil {
		return nil, fmt.Errorf("mayfly: %w", err)
	}
	return &Local{t}, nil
}

func (o LocalOptions) validate() error {
	c := check.In("LocalOptions.")
	switch o.Redis.(type) {
	case nil, *redis.Client, *redis.ClusterClient:
		c.Add(check.Client("LocalOptions.Redis", o.Redis))
	case *redis.Ring:
		c.Refuse(true, "Redis is a redis.Ring, whose shards say nothing when a key moves: use a redis.ClusterClient")
	default:
		c.Refuse(true, "Redis must be a *redis.Client or a *redis.ClusterClient, got %T", o.Redis)
	}
	c.Refuse(len(o.Prefixes) == 0, "Prefixes is empty: name the prefixes of the namespaces that will use this tier")
	for i, p := range o.Prefixes {
		c.Refuse(p == "", "Prefixes[%d] is empty: all keys of the server would be told of; name the namespaces' own", i)
		c.Refuse(p != "" && keyform.Collides(p), "Prefixes[%d] %q leads into %q, where mayfly keeps its own keys: choose another", i, p, keyform.Reserved)
		for j, q := range o.Prefixes {
			c.Refuse(i != j && p != "" && strings.HasPrefix(q, p) && (p != q || i < j), "Prefixes[%d] %q begins Prefixes[%d] %q, which Redis refuses: leave the longer out", i, p, j, q)
		}
	}
	c.Refuse(o.MaxBytes < 0, "MaxBytes must not be negative, got %d", o.MaxBytes)
	c.Refuse(o.MaxEntries < 0, "MaxEntries must not be negative, got %d", o.MaxEntries)
	c.Refuse(o.MaxBytes == 0 && o.MaxEntries == 0, "MaxBytes and MaxEntries are both zero: set a bound, such as MaxBytes: 64 << 20")
	c.TTL("MaxTTL", o.MaxTTL)
	c.TTL("Outage", o.Outage)
	c.Refuse(o.Silence != 0 && o.Silence < 100*time.Millisecond, "Silence must be at least 100ms, got %v", o.Silence)
	c.Refuse(o.Silence > time.Hour, "Silence must be at most an hour, got %v", o.Silence)
	c.Refuse(o.ShortTTL > time.Hour, "ShortTTL must be at most an hour, got %v", o.ShortTTL)
	return c.Err()
}

// LocalStats says what a [Local] holds and what happened since it was opened.
type LocalStats struct {
	// Rung is the way in which changes in Redis are heard now, a stable word, fit for a label. docs/coherence.md says what each promises.
	//
	//   - "tracking": the server tells of every change, whoever makes it.
	//   - "pubsub": processes that use this library tell each other what they write. Changes by others are not heard.
	//   - "short_ttl": the server allows no way to hear of changes, so copies live for LocalOptions.ShortTTL.
	//   - "off": it is not known that changes are heard, so no copy is served. There is no connection now, or Redis refuses the writes
	//     that would show it.
	Rung string

	Why     error // why Rung is not "tracking"; nil if it is
	Entries int
	Bytes   int64 // of MaxBytes
	Dead    int   // entries that are over and whose memory was not taken back yet

	Hits, Misses uint64 // reads that found a copy, and that did not while copies could be served
	Evictions    uint64 // copies evicted to make room
	Expired      uint64 // copies that came to their end
	TooLarge     uint64 // copies not kept, larger than MaxBytes alone
	Outdated     uint64 // copies not kept, because the key changed while it was read
	Changes      uint64 // keys heard to have changed
	Flushes      uint64 // times that all was dropped, as when a link was lost
}

// Stats adds up the counters. It is for now and then, not for every request.
func (l *Local) Stats() LocalStats {
	s := l.local.Stats()
	return LocalStats{
		Rung: s.Rung.String(), Why: s.Why, Entries: s.Entries, Bytes: s.Bytes, Dead: s.Dead,
		Hits: s.Hits, Misses: s.Misses, Evictions: s.Evictions, Expired: s.Expired, TooLarge: s.Refused,
		Outdated: s.Outdated, Changes: s.Heard, Flushes: s.Flushes,
	}
}

// Close drops all copies and ends the connections that listen; caches that use the tier go on without it, and tell nobody of what
// they change. It waits until ctx ends, and then returns its error; for changes to be announced it waits up to Silence. Closing
// again is fine. The Redis client stays open: it is the caller's.
func (l *Local) Close(ctx context.Context) error {
	if err := l.local.Close(ctx); err != nil {
		return fmt.Errorf("mayfly: close the local tier: %w", err)
	}
	return nil
}

// serves returns an error if a namespace cannot use the tier.
func (l *Local) serves(rdb redis.UniversalClient, prefix string) error {
	if l.local == nil {
		return errors.New("Namespace.Local was not opened: use OpenLocal")
	}
	if l.local.Closed() {
		return fmt.Errorf("Namespace.Local: %w", ErrClosed)
	}
	if rdb != l.local.Redis() {
		return errors.New("Namespace.Redis is not the client that Namespace.Local was opened with: use one for both")
	}
	for _, p := range l.local.Prefixes() {
		if strings.HasPrefix(prefix, p) {
			return nil
		}
	}
	return fmt.Errorf("Namespace.Prefix %q is outside the prefixes of Namespace.Local, %q: add it to LocalOptions.Prefixes", prefix, l.local.Prefixes())
}
