package cacheaside

import (
	"cmp"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// Options adjust a cache. The zero value of every field is a default that works.
type Options struct {
	// MissTTL is how long the cache remembers that the origin does not have a key, with the namespace's jitter. Zero remembers nothing:
	// each Get asks the origin again, and processes that want the same key do so one after the other. Give it a second or more where many
	// ask for what does not exist.
	MissTTL time.Duration

	// NotFound reports whether an error of the loader means that the origin does not have the key, as in
	// func(err error) bool { return errors.Is(err, sql.ErrNoRows) }. Get then returns mayfly.ErrNotFound. Nil knows only
	// mayfly.ErrNotFound itself, which always counts.
	NotFound func(error) bool

	// Early decides when a value is renewed before it expires. Nil is earlyrefresh.XFetch(1), but earlyrefresh.Never for
	// Plain namespaces, which cannot store how long a load took. earlyrefresh.Never turns it off.
	Early earlyrefresh.Policy

	// Hold is how long after a Delete loaded values are not stored. If the loader reads a database replica, make it longer
	// than the replica lags. A later Delete with less Hold does not shorten it, nor does Clear, but a Delete or Clear of a cache without
	// Hold ends it, and so do a Set, a DEL by another program and a Redis that evicts: give all processes with one prefix the same Hold, and
	// the Redis noeviction, or much more memory than is written within Hold. Zero stores at once.
	Hold time.Duration

	// Compress is the size in bytes from which values are compressed (s2), if that saves at least a tenth. Zero compresses
	// nothing. Compressed values can be read with any setting.
	Compress int

	// RedisTimeout is how long one call waits for Redis at most, whatever the client's own timeouts are. A client with ContextTimeoutEnabled, as
	// [mayfly.CacheClient] makes it, may give up sooner, after its ReadTimeout: raise both. Waiting for a connection that other calls
	// of this process use does not count as long as Redis answers them. That wait ends with the caller's context, or after LoadTimeout
	// with mayfly.ErrCrowded, and a Get then goes on without Redis. If the process has not heard from Redis for two seconds, a Set first
	// asks for its time, and waits at most as long again for that. Zero is 150 ms.
	RedisTimeout time.Duration

	// Unremoved is how many keys are remembered after a failed Delete, to be deleted when Redis is back. Until then each Get loads
	// them. Zero is 1024.
	Unremoved int

	// LoadTimeout bounds a load: after it the loader's context ends, and callers get mayfly.ErrLoadTimeout, even if the loader ignores
	// its context. Such a load remains the one load of its key until it ends, for at most ten times LoadTimeout: callers wait for it
	// up to LoadTimeout, and get mayfly.ErrLoadTimeout. If a loading process is killed, its waiters wait for another load, which begins
	// about a second later. To tell one from a live one, a caller that has waited for LoadTimeout waits for a sign of life, up to
	// half a second, before it gets mayfly.ErrLoadTimeout. Zero is 10 s.
	LoadTimeout time.Duration

	// LoadSoftTimeout is how long a caller waits for a load if there is a stale value to return instead (see StaleIfError); the load
	// goes on. Zero waits until LoadTimeout.
	LoadSoftTimeout time.Duration

	// LoadAbandon cancels a load when the contexts of all its waiters have ended. By default it goes on.
	LoadAbandon bool

	// LoadLimit is how many loads run at once in this process; the others wait in a queue. Zero: as many as the origin can work on, which
	// is found while they run (docs/overload.md). Negative: any number. A load that gets no turn within LoadTimeout fails with
	// mayfly.ErrOverloaded; one whose callers have all left in the meantime is not begun. A load that was given up after LoadTimeout gives
	// its place back even if its loader ignores its context and runs on: then more run than this. Cache.Origin counts them.
	LoadLimit int

	// Origin is what this cache shares with others that ask the same database: one limit for all of them. Its own limit holds then, and
	// LoadLimit must be zero. Nil is an origin of its own. Cache.Origin has the figures.
	Origin *mayfly.Origin

	// StaleWhile is how long after its TTL a value is still returned, at once, while it is renewed in the background: one load per TTL, and
	// no reader waits. Redis keeps the value that much longer. Zero returns none.
	StaleWhile time.Duration

	// StaleIfError is how long after its TTL a value is still returned when the load failed, or took longer than LoadSoftTimeout. Redis keeps
	// the value that much longer. Zero returns none.
	StaleIfError time.Duration

	// RenewLimit is how many renewals run in the background at once. Beyond that, a later reader starts the renewal. Zero is 16.
	RenewLimit int

	// RenewThrottle is how long all processes wait after a failed renewal before one tries again. Zero is 1 s; negative is no wait.
	RenewThrottle time.Duration
}

// window is how long a value stays in Redis after its TTL.
func (o Options) window() time.Duration { return max(o.StaleWhile, o.StaleIfError) }

func (o Options) validate(plain bool) error {
	c := check.In("Options.")
	c.TTL("MissTTL", o.MissTTL)
	c.TTL("Hold", o.Hold)
	c.TTL("StaleWhile", o.StaleWhile)
	c.TTL("StaleIfError", o.StaleIfError)
	c.TTL("LoadTimeout", o.LoadTimeout)
	c.TTL("LoadSoftTimeout", o.LoadSoftTimeout)
	c.TTL("RedisTimeout", o.RedisTimeout)
	c.Refuse(o.Compress < 0, "Compress must not be negative, got %d", o.Compress)
	c.Refuse(o.RenewLimit < 0, "RenewLimit must not be negative, got %d; earlyrefresh.Never renews nothing", o.RenewLimit)
	c.Refuse(o.Origin != nil && o.LoadLimit != 0, "LoadLimit is %d, and Origin has a limit of its own: give that to mayfly.NewOrigin", o.LoadLimit)
	c.Refuse(o.Origin != nil && admission.Of(o.Origin) == nil, "Origin was not made: use mayfly.NewOrigin")
	if o.Origin == nil {
		_, err := mayfly.NewOrigin(mayfly.OriginOptions{Limit: o.LoadLimit})
		c.Refuse(err != nil, "LoadLimit must be at most 1000000, got %d: a negative one is no limit", o.LoadLimit)
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
		c.Refuse(o.StaleWhile != 0, "StaleWhile "+room)
		c.Refuse(o.StaleIfError != 0, "StaleIfError "+room)
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
	o.LoadTimeout = cmp.Or(o.LoadTimeout, 10*time.Second)
	o.RenewLimit = cmp.Or(o.RenewLimit, 16)
	o.RenewThrottle = cmp.Or(o.RenewThrottle, time.Second)
	o.RedisTimeout = cmp.Or(o.RedisTimeout, nodes.Timeout)
	o.Unremoved = cmp.Or(o.Unremoved, 1024)
	return o
}
