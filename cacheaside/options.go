package cacheaside

import (
	"errors"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

// Options say what a cache does beyond the plain. Every zero is a default that works.
type Options struct {
	// MissTTL is for how long it is remembered that the origin has no such thing. Zero remembers nothing: each Get asks
	// the origin again.
	MissTTL time.Duration

	// NotFound tells a loader's error that means "the origin has none" from a failure, as in
	// func(err error) bool { return errors.Is(err, sql.ErrNoRows) }. It is asked beside mayfly.ErrNotFound.
	NotFound func(error) bool

	// Early decides when a value is renewed before it ends. Nil is earlyrefresh.XFetch(1); earlyrefresh.Never turns it
	// off. Plain namespaces, which have no room for what a load costs, are renewed early only by a policy that does not
	// need it, and by none if this is nil.
	Early earlyrefresh.Policy

	// Hold is for how long after a Delete nothing that was loaded is stored: longer than the database replica that a
	// loader may read can lag. Zero stores at once.
	Hold time.Duration

	// Compress is the number of bytes from which values are compressed (s2), if that saves at least a tenth. Zero
	// compresses nothing. What is compressed is read whatever this says.
	Compress int

	Load   Load
	Stale  Stale
	Faults Faults
}

// Load says how loads run.
type Load struct {
	// Timeout is the hard one: the loader's context ends, and who waits gets an error, whether the loader heeds it or
	// not. Zero is 10 s.
	Timeout time.Duration

	// Soft is how long a caller waits for a load if there is a stale value to serve instead; the load goes on. Zero
	// waits to Timeout.
	Soft time.Duration

	// Abandon cancels a load when the last caller who waited for it has left. By default it goes on.
	Abandon bool

	// Renewals is how many renewals run in the background at once; what is due beyond that waits for a later reader.
	// Zero is 16.
	Renewals int
}

// Stale says for how long after its TTL a value may still be served. It is kept in Redis that much longer.
type Stale struct {
	// While is for how long it is served at once, and renewed in the background: exactly one load per TTL, and no
	// reader waits.
	While time.Duration

	// IfError is for how long it is served when a load failed, or took longer than Load.Soft.
	IfError time.Duration

	// Throttle is for how long, after a renewal failed, no process tries again. Zero is 1 s; negative tries at once.
	Throttle time.Duration
}

func (s Stale) window() time.Duration { return max(s.While, s.IfError) }

// Faults say what a Redis that does not work as it should may cost.
type Faults struct {
	// RedisTimeout is what one call may wait for Redis, whatever the client's own timeouts are. With a client whose
	// ContextTimeoutEnabled is false, go-redis's default, a third of it is for getting a connection, and the client's hooks
	// do not see the cache's commands: set it. Zero is 150 ms.
	RedisTimeout time.Duration

	// Loads is how many loads run at once while Redis cannot be asked and so does not shield the origin; the others
	// wait for their turn. Zero is 64.
	Loads int

	// Queue is how many keys whose Delete failed are remembered, to be deleted when Redis is back. Until then they are
	// loaded anew at each Get. Zero is 1024.
	Queue int
}

func (o Options) validate(plain bool) error {
	var wrong []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf("Options."+format, args...))
		}
	}
	ttl := func(field string, d time.Duration) {
		if d != 0 {
			if err := mayfly.CheckTTL("Options."+field, d); err != nil {
				wrong = append(wrong, err)
			}
		}
	}
	ttl("MissTTL", o.MissTTL)
	ttl("Hold", o.Hold)
	ttl("Stale.While", o.Stale.While)
	ttl("Stale.IfError", o.Stale.IfError)
	ttl("Load.Timeout", o.Load.Timeout)
	ttl("Load.Soft", o.Load.Soft)
	ttl("Faults.RedisTimeout", o.Faults.RedisTimeout)
	add(o.Compress < 0, "Compress must not be negative, got %d", o.Compress)
	add(o.Load.Renewals < 0, "Load.Renewals must not be negative, got %d; earlyrefresh.Never renews nothing", o.Load.Renewals)
	add(o.Faults.Loads < 0, "Faults.Loads must not be negative, got %d", o.Faults.Loads)
	add(o.Faults.Queue < 0, "Faults.Queue must not be negative, got %d", o.Faults.Queue)
	if o.Early != nil {
		if err := earlyrefresh.Validate(o.Early); err != nil {
			wrong = append(wrong, fmt.Errorf("Options.Early: %w", err))
		}
	}
	if plain {
		const room = "needs a header, which a plain value has no room for: use it without Namespace.Plain"
		add(o.MissTTL != 0, "MissTTL "+room)
		add(o.Hold != 0, "Hold "+room)
		add(o.Compress != 0, "Compress "+room)
		add(o.Stale.window() != 0, "Stale "+room)
		add(needsCost(o.Early), "Early weighs the cost of a load, which "+room)
	}
	return errors.Join(wrong...)
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
	def(&o.Load.Timeout, 10*time.Second)
	def(&o.Load.Renewals, 16)
	def(&o.Stale.Throttle, time.Second)
	def(&o.Faults.RedisTimeout, 150*time.Millisecond)
	def(&o.Faults.Loads, 64)
	def(&o.Faults.Queue, 1024)
	return o
}

// def gives v its default if it is zero.
func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}
