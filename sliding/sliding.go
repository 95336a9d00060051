// Package sliding keeps values in Redis that live as long as they are used: sessions, carts, logins. Each Get resets the TTL of
// the value, up to [Options.MaxAge].
//
//	sessions, err := sliding.New(mayfly.Namespace[string, Session]{
//		Name: "sessions", Redis: rdb, Prefix: "session:", TTL: 30 * time.Minute,
//	}, sliding.Options{MaxAge: 12 * time.Hour})
//	...
//	err = sessions.Create(ctx, id, Session{User: 1001})
//	s, err := sessions.Get(ctx, id) // lives for 30 more minutes
//
// Redis holds the only copy, so a failure of Redis is an error of the call. [mayfly.ErrNotFound] means that Redis has no such
// value, and nothing else. A Redis that hangs costs a call [Options].RedisTimeout, 150 ms, and soon nothing.
//
// The package also has a rate limiter for many processes, [Limiter].
//
// # Lost replies
//
// A write that returned nil leaves nothing behind that can still take effect, however late the network delivers what was
// sent. So Create, Set, Rotate and Delete are sent once. If the reply is lost, they look for the value that they wrote, which has an id (values
// of Namespace.Plain have none, and a Delete leaves nothing to look for). If it is not there,
// the error is [mayfly.ErrUnknownOutcome]: the write was done, or it was not, or it will be, once, when it arrives.
// Read before you write again; a Delete can be repeated until it returns nil. Update may be sent again, since it fails unless it
// finds what it read. A command that the server says it did not execute, as during a failover, is sent again, for up to a quarter of a
// second.
//
// After a lost reply go-redis repeats the renewals of Get, Touch and TouchMany. A renewal that arrives late gives whatever is then under
// its key the full TTL once more, but with [Options.MaxAge] never more than that value's remaining age.
package sliding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/internal/client/keyspace"
	"github.com/mayflycache/mayfly/internal/client/localview"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Options adjust a store. Each field's zero value is a default that works.
type Options struct {
	// MaxAge is how old a value may become, however much it is used: Create, or the Set that found nothing, fixes the latest
	// end, and no access extends it. Redis's clock decides, to the millisecond. Zero lets a value live as long as it is
	// used. All programs that share a namespace must use the same MaxAge.
	//
	// If Redis's clock goes back, for example at a failover to a server whose clock is behind, the first access that finds an end more
	// than MaxAge away moves it to MaxAge from then. So each such step lets a value live for one more MaxAge, counted from that access.
	MaxAge time.Duration

	// TouchBelow lets an access reset the TTL only if at most this share of it is left. At 0.5 a value in constant use costs
	// two writes per TTL instead of one per Get, and an idle one expires after half a TTL to a whole one. Zero is 1:
	// each access resets it. With a local tier zero is 0.5, and 1 is refused, since each reset invalidates the copies in
	// all processes.
	TouchBelow float64

	// Atomic makes Get send one GETEX instead of GET and PEXPIRE in one trip, between which another client's command may be executed.
	// GETEX is a write, which matters for ACLs and for tools that route reads.
	Atomic bool

	// RedisTimeout is how long one command may wait for Redis, whatever the client's own timeouts. If a server leaves five of this
	// store's commands in a row unanswered, the store does not ask it for half a second, and then lets one caller at a time ask; until it answers,
	// calls
	// for its keys fail at once. Most calls ask once, or once more to see what became of a write whose reply was lost. Update, Rotate and
	// calls that the server tells to try again soon ask as often as they need. Zero is 150 ms; set more if your site would rather wait
	// for its sessions than answer with an error.
	RedisTimeout time.Duration
}

func (o Options) validate(plain, local bool, ttl time.Duration) error {
	c := check.In("Options.")
	if o.MaxAge != 0 {
		c.TTL("MaxAge", o.MaxAge)
		c.Refuse(o.MaxAge < ttl, "MaxAge %v is shorter than Namespace.TTL %v: no value would live that long; shorten the TTL", o.MaxAge, ttl)
		c.Refuse(plain, "MaxAge needs a header, which a plain value has no room for: use it without Namespace.Plain")
		c.Refuse(o.Atomic, "Atomic is set, and so is MaxAge, which has a script of its own: leave one out")
	}
	c.TTL("RedisTimeout", o.RedisTimeout)
	c.Refuse(math.IsNaN(o.TouchBelow) || o.TouchBelow < 0 || o.TouchBelow > 1, "TouchBelow must be 0 to 1, got %v", o.TouchBelow)
	c.Refuse(local && o.TouchBelow == 1, "TouchBelow is 1 and Namespace.Local is set: each access would renew, and so take away, the copies of all processes; use 0.5")
	c.Refuse(o.Atomic && (local || o.TouchBelow > 0 && o.TouchBelow < 1), "Atomic renews at each access, which a TouchBelow under 1 and a local tier do not: leave it out")
	return c.Err()
}

// Store is the values of one namespace. It is safe for concurrent use and needs no Close.
type Store[K comparable, V any] struct {
	room   keyspace.Room[K, V]
	redis  sendonce.Bounded
	opt    Options
	format uint32
	ttl    any                   // in milliseconds, as commands and scripts expect it
	below  time.Duration         // an access renews a value that has less than this left
	local  *localview.View[K, V] // nil: no local tier. A copy ends when an access would have to renew the value
}

// New returns a store of ns, whose TTL is how long a value lives without being used. It does no I/O. Jitter is an error: a
// session must not expire early.
func New[K comparable, V any](ns mayfly.Namespace[K, V], o Options) (*Store[K, V], error) {
	room, c := keyspace.Of("sliding", ns)
	c.Refuse(!ns.Jitter.IsZero(), "Namespace.Jitter must be zero: a sliding value must live for its whole TTL")
	c.Wrap(o.validate(ns.Plain, ns.Local != nil, ns.TTL))
	c.Refuse(ns.MaxTTL != 0 && ns.Plain, "Namespace.MaxTTL needs a header, which a plain value has no room for: use it without Namespace.Plain")
	c.Refuse(ns.MaxTTL != 0 && o.Atomic, "Options.Atomic is set, and so is Namespace.MaxTTL, which has a script of its own: leave one out")
	if err := c.Err(); err != nil {
		return nil, err
	}
	ns = room.Namespace
	s := &Store[K, V]{
		room: room, redis: sendonce.To(ns.Redis, ns.Observer, ns.Name, o.RedisTimeout), opt: o,
		format: record.FormatOf(room.Codec.Format()), local: localview.Of[V](ns, nil),
	}
	s.ttl = strconv.FormatInt(ns.TTL.Milliseconds(), 10)
	switch {
	case o.TouchBelow == 0 && ns.Local != nil:
		s.below = ns.TTL / 2
	case o.TouchBelow == 0 || o.TouchBelow == 1:
		s.below = always
	default:
		s.below = max(time.Duration(float64(ns.TTL)*o.TouchBelow), time.Millisecond)
	}
	return s, nil
}

// always is longer than any TTL, so that each access renews.
const always = time.Duration(math.MaxInt64)

// encode returns the bytes of v for Redis, with room for a life of its own if values can have one. Two writes never have the same bytes, except
// those of plain values.
func (s *Store[K, V]) encode(v V, l Life) ([]byte, error) {
	if s.room.Plain {
		return s.room.Codec.Append(nil, v)
	}
	header := record.BeginSession
	if s.room.MaxTTL > 0 {
		header = func(dst []byte, id record.ID, format uint32) []byte {
			return record.BeginOwnLife(dst, id, format, l.TTL, l.MaxAge)
		}
	}
	rec, err := s.room.Codec.Append(header(nil, record.NewID(), s.format), v)
	if err == nil && !record.Seal(rec) {
		err = fmt.Errorf("the value has %d bytes, and Redis takes at most %d", len(rec), record.MaxLen)
	}
	return rec, err
}

// decode returns the value of bytes from Redis. They are the codec's and the value's from then on: who needs them afterwards passes a copy.
func (s *Store[K, V]) decode(raw []byte) (v V, err error) {
	kind, h, body := record.Parse(raw)
	switch {
	case kind == record.Plain: // another program wrote it
	case kind != record.Session || s.room.Plain:
		return v, fmt.Errorf("the key holds a record of another kind (%v): is its prefix used by a cache too?", kind)
	case h.Format != s.format:
		return v, fmt.Errorf("the value was written by another codec than %q", s.room.Codec.Format())
	}
	return s.room.Codec.Decode(body)
}

// Delete removes values. A missing value is not an error. If a key cannot be encoded, none is deleted. After mayfly.ErrUnknownOutcome some values may still be there, and the deletion
// may still take effect later, once, and then also remove what was created under the key in the meantime.
func (s *Store[K, V]) Delete(ctx context.Context, keys ...K) error {
	fulls, err := s.room.FullKeys("delete", keys)
	if err != nil {
		return err
	}
	s.local.Forget(fulls...)
	defer s.local.Changed(ctx, fulls...)
	unlinks := make([][]any, len(fulls)) // one command per key, so that a cluster accepts them all
	for i, full := range fulls {
		unlinks[i] = []any{"unlink", full}
	}
	var wrong []error
	for i, cmd := range s.redis.Many(ctx, fulls, unlinks) {
		wrong = append(wrong, s.room.Fail("delete", fulls[i], sendonce.Outcome(ctx, s.redis, fulls[i], cmd.Err())))
	}
	return errors.Join(wrong...)
}
