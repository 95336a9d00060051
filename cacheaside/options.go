package cacheaside

import (
	"cmp"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/check"
)

// Options adjust a cache. The zero value of every field is a default that works.
type Options struct {
	// MissTTL is how long it is remembered that the origin does not have a key. Zero remembers nothing: each Get asks the
	// origin again.
	MissTTL time.Duration

	// NotFound reports whether an error of the loader means that the origin does not have the key, as in
	// func(err error) bool { return errors.Is(err, sql.ErrNoRows) }. Get then returns mayfly.ErrNotFound. Nil knows only
	// mayfly.ErrNotFound itself, which always counts.
	NotFound func(error) bool

	// Early decides when a value is renewed before it expires. Nil is earlyrefresh.XFetch(1), but earlyrefresh.Never for
	// Plain namespaces, which cannot store how long a load took. earlyrefresh.Never turns it off.
	Early earlyrefresh.Policy

	// Hold is how long after a Delete loaded values are not stored. If the loader reads a database replica, make it longer
	// than the replica lags. Zero stores at once.
	Hold time.Duration

	// Compress is the size in bytes from which values are compressed (s2), if that saves at least a tenth. Zero compresses
	// nothing. Compressed values can be read with any setting.
	Compress int

	// RedisTimeout is how long one call waits for Redis, whatever the client's own timeouts are. Waiting for a connection that other calls
	// of this process have is none of that as long as Redis answers them: it ends with the caller's context, or at Load.Timeout with
	// mayfly.ErrCrowded, after which a Get takes Redis for one that cannot be asked. A Set of a process that has not heard of Redis for two
	// seconds asks for its time first, and waits for that as long at most. Zero is 150 ms.
	RedisTimeout time.Duration

	// Unremoved is how many keys are remembered whose Delete failed, to be deleted when Redis is back. Until then each Get loads
	// them. Zero is 1024.
	Unremoved int

	Load  Load
	Stale Stale
}

// Load says how loads run.
type Load struct {
	// Timeout bounds a load: after it the loader's context ends, and callers get mayfly.ErrLoadTimeout, even if the loader ignores
	// its context. Such a load still is the one load of its key until it ends, for ten times Timeout at most: callers wait for it
	// up to Timeout, and get mayfly.ErrLoadTimeout. Who waits for a load of another process that is killed waits for another load, a second
	// later. Zero is 10 s.
	Timeout time.Duration

	// Soft is how long a caller waits for a load if there is a stale value to return instead (see Stale.IfError); the load
	// goes on. Zero waits until Timeout.
	Soft time.Duration

	// Abandon cancels a load when the contexts of all callers who wait for it have ended. By default it goes on.
	Abandon bool

	// Limit is how many loads run at once in this process; the others wait in a queue. Zero: as many as the origin can work on, which
	// is found while they run (docs/overload.md). Negative: any number. A load that gets no turn within Timeout fails with
	// mayfly.ErrOverloaded; one whose callers have all left in the meantime is not begun.
	Limit int

	// Origin is what this cache shares with others that ask the same database: one limit for all of them. Its own limit holds then, and
	// Limit must be zero. Nil is an origin of its own. Cache.Origin has the figures.
	Origin *mayfly.Origin

	// Renewals is how many renewals run in the background at once; beyond that a renewal is left to a later reader. Zero
	// is 16.
	Renewals int
}

// Stale says how long after its TTL a value may still be served. Redis keeps it that much longer. Zero durations serve
// nothing stale.
type Stale struct {
	// While is how long a stale value is returned at once while it is renewed in the background: one load per TTL, and no
	// reader waits.
	While time.Duration

	// IfError is how long a stale value is returned when the load failed, or took longer than Load.Soft.
	IfError time.Duration

	// Throttle is how long no process tries again after a renewal failed. Zero is 1 s; negative tries at once.
	Throttle time.Duration
}

func (s Stale) window() time.Duration { return max(s.While, s.IfError) }

func (o Options) validate(plain bool) error {
	c := check.In("Options.")
	c.TTL("MissTTL", o.MissTTL)
	c.TTL("Hold", o.Hold)
	c.TTL("Stale.While", o.Stale.While)
	c.TTL("Stale.IfError", o.Stale.IfError)
	c.TTL("Load.Timeout", o.Load.Timeout)
	c.TTL("Load.Soft", o.Load.Soft)
	c.TTL("RedisTimeout", o.RedisTimeout)
	c.Refuse(o.Compress < 0, "Compress must not be negative, got %d", o.Compress)
	c.Refuse(o.Load.Renewals < 0, "Load.Renewals must not be negative, got %d; earlyrefresh.Never renews nothing", o.Load.Renewals)
	c.Refuse(o.Load.Origin != nil && o.Load.Limit != 0, "Load.Limit is %d, and Load.Origin has a limit of its own: give that to mayfly.NewOrigin", o.Load.Limit)
	c.Refuse(o.Load.Origin != nil && admission.Of(o.Load.Origin) == nil, "Load.Origin was not made: use mayfly.NewOrigin")
	if o.Load.Origin == nil {
		_, err := mayfly.NewOrigin(mayfly.OriginOptions{Limit: o.Load.Limit})
		c.Refuse(err != nil, "Load.Limit must be at most 1000000, got %d: a negative one is no limit", o.Load.Limit)
	}
	c.Refuse(o.Unremoved < 0, "Unremoved must not be negative, got %d", o.Unremoved)
	if early, ok := o.Early.(interface{ Validate() error }); ok {
		err := early.Validate()
		c.Refuse(err != nil, "Early: %w", err)
	}
	if plain {
		const room = "needs a header, which a plain value has no room for: use it without Namespace.Plain"
		c.Refuse(o.MissTTL != 0, "MissTTL "+room)
		c.Refuse(o.Hold != 0, "Hold "+room)
		c.Refuse(o.Compress != 0, "Compress "+room)
		c.Refuse(o.Stale.window() != 0, "Stale "+room)
		c.Refuse(needsCost(o.Early), "Early weighs the cost of a load, which "+room)
	}
	return c.Err()
}

// needsCost finds a policy that never fires unless it knows what a load costs, by asking it.
func needsCost(p earlyrefresh.Policy) bool {
	const ttl, last, draw = time.Hour, time.Nanosecond, 1 - 1e-9
	return p != nil && !p.Due(ttl, last, 0, draw) && p.Due(ttl, last, ttl, draw)
}

func (o Options) withDefaults(plain bool) Options {
	if o.Early == nil {
		o.Early = earlyrefresh.XFetch(1)
		if plain {
			o.Early = earlyrefresh.Never
		}
	}
	o.Load.Timeout = cmp.Or(o.Load.Timeout, 10*time.Second)
	o.Load.Renewals = cmp.Or(o.Load.Renewals, 16)
	o.Stale.Throttle = cmp.Or(o.Stale.Throttle, time.Second)
	o.RedisTimeout = cmp.Or(o.RedisTimeout, 150*time.Millisecond)
	o.Unremoved = cmp.Or(o.Unremoved, 1024)
	return o
}
