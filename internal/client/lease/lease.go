// Package lease is the one stampede guard: it decides, on bytes, who loads a missing key and whether what was loaded
// may still be stored.
//
// The right to load is a lease that lives where the value will: in the value's own key. So it needs no second key in the
// same slot, and whatever removes the key, by whichever program (DEL, expiry, eviction, FLUSHDB), also ends the right to
// fill it. The way of a key through the package:
//
//	Look    one GET (with PTTL in the same trip where asked): Absent, Present, Loading or Held
//	Glance  one GET, with the time left as reckoned from what the record says of its end
//	Claim   Absent:  SET k <lease> NX GET PX 1s
//	        Present, and the caller cannot use it:  the lease in place of just these bytes
//	        Present, and the caller wants a newer one:  Renew, a lock beside the value, which stays
//	        the answer is a *Claim, or what somebody else put there meanwhile
//	Acquire one step of all this: claims, renews or awaits, as what was seen asks for, and says how the caller stands
//	Keep    every third of a second the lease is prolonged, so that it can be short: a killed holder costs others a second
//	Fill    the value in place of the claim's own lease, or nothing at all
//	Fail    the load failed: a note in place of the lease, so that those who wait for it, in whatever process, fail with it. It is for
//	        nobody else: who comes later claims over it, and the new lease carries the note on, for those who have yet to see it
//	Outlast the load is over its time and cannot be ended: the lease stays, with the note, until it ends or its process dies
//	Await   those without the claim ask again, gently, until there is something
//
// A read writes nothing; only a miss does.
//
// A request may reach Redis long after its client gave up on it. So a claim is sent once: if its reply is lost, it is asked again
// with a new token, and the old one, whenever it arrives, is a lease of nobody, which costs readers [TTL] at most. All that follows
// a claim compares the token, and so may be repeated. Set is sent once. A DEL may be repeated, since one that comes late costs
// a load and no truth.
//
// What a Redis that cannot take part means (down, hung, read-only, out of memory, the key holds a list) is that every
// method returns the error, and the caller loads without storing. Nothing here knows codecs or loaders.
package lease

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// TTL is how long a lease or a lock lives if its holder does not [Claim.Keep] it.
const TTL = time.Second

// Beat is how often a holder keeps its claim: two beats may be lost.
const Beat = TTL / 3

// Options say how a Guard works.
type Options struct {
	// Redis is where the values are.
	Redis redis.UniversalClient

	// Timeout is what one method may wait for Redis, whatever the client's own settings. Clear takes it per command.
	Timeout time.Duration

	// Plain keeps leases in a key beside the value, for values that other programs read. Then a DEL by another
	// program does not end the right to fill.
	Plain bool

	// Hold, if not zero, is for how long Delete leaves a tombstone that refuses fills.
	Hold time.Duration

	// Breaker is told when the breaker of a server opens and closes. May be nil.
	Breaker func(server string, open bool)

	// Wait and Waited are about calls that wait for others of this process: see nodes.Options.
	Wait   time.Duration
	Waited func(ctx context.Context, took time.Duration, n int, err error)

	// Moved is told, before anything else is done about it, that a slot of a cluster is somewhere else. May be nil.
	Moved func()

	// Start runs what go-redis ends in its own time, and reports false if the owner is closed. May be nil: see nodes.Options.
	Start func(func()) bool

	// Closing is closed when the owner is: see nodes.Options. May be nil.
	Closing <-chan struct{}

	// Pushes returns a channel that is signalled when key has changed, and its end, or nil if nothing is pushed now; what the
	// local tier hears is faster than any polling. May be nil.
	Pushes func(key string) (changed <-chan struct{}, stop func())
}

// CanGuard returns an error if the keys of a client cannot be guarded.
func CanGuard(rdb redis.UniversalClient, plain bool) error {
	if _, ring := rdb.(*redis.Ring); ring && plain {
		return errors.New("Namespace.Redis is a redis.Ring, and Namespace.Plain is set: the lease of a plain value is a key beside it, which a Ring may put on another shard; use a cluster, or leave Plain out")
	}
	return nil
}

// Guard is the stampede guard of one kind of values. It holds no goroutine, but for reads that travel together, as long as somebody waits.
type Guard struct {
	nodes   *nodes.Nodes
	timeout time.Duration
	plain   bool
	hold    time.Duration
	pushes  func(key string) (<-chan struct{}, func())
	glances habit
}

// New returns a Guard. It does no I/O.
func New(o Options) *Guard {
	return &Guard{nodes: nodes.New(nodes.Options{Redis: o.Redis, Timeout: o.Timeout, Wait: o.Wait, Breaker: o.Breaker, Waited: o.Waited, Moved: o.Moved, Start: o.Start, Closing: o.Closing}), timeout: o.Timeout, plain: o.Plain, hold: o.Hold, pushes: o.Pushes}
}

// State says what a key holds, as far as the guard is concerned.
type State uint8

const (
	Absent  State = iota // nothing: to be claimed
	Present              // bytes, which the caller may be able to use
	Loading              // somebody's lease: to be awaited
	Held                 // a tombstone: to be loaded and not stored
	Failed               // the latest load failed: to be claimed by whoever asks later
)

// Found is what a key held.
type Found struct {
	State State

	// Raw is what was stored, and Kind, Header and Body are what it says, where State is Present.
	Raw    []byte
	Kind   record.Kind
	Header record.Header
	Body   []byte

	// Lease is somebody's token: the key's own where State is Loading, or that beside a plain value, which only Await sees.
	Lease []byte

	// Failure is the load of this key that failed last, where State is Failed, or where it is Loading and the holder knows.
	Failure record.Failed

	// Left is the TTL at the time of the reply, where it was asked for: NoTTL if there is none, and Gone if the value
	// ended between its reading and this question.
	Left time.Duration

	// Reckoned is the TTL as reckoned from when the record says that it ends, where Left was not asked for; zero if it is not known. It may be wrong: good
	// for handing out what is there, and nothing else is to be done because of it.
	Reckoned time.Duration

	// Spent is how much of Options.Timeout it took to read it. Waiting for other calls is none of that.
	Spent time.Duration
}

// Holder names the load that f's lease is for; zero if there is none.
func (f Found) Holder() (id record.ID) {
	if len(f.Lease) >= record.HeadLen {
		copy(id[:], f.Lease[record.HeadLen-len(id):])
	}
	return id
}

// What Found.Left says beside a time. Zero is "not asked".
const (
	NoTTL time.Duration = -1
	Gone  time.Duration = -2
)

func found(raw []byte, left time.Duration) Found {
	f := Found{State: Present, Raw: raw, Left: left}
	switch f.Kind, f.Header, f.Body = record.Parse(raw); f.Kind {
	case record.Lease:
		return Found{State: Loading, Lease: raw, Left: left, Failure: record.FailureOf(f.Kind, f.Header, f.Body)}
	case record.Failure:
		f.State, f.Failure = Failed, record.FailureOf(f.Kind, f.Header, f.Body)
	case record.Tombstone:
		return Found{State: Held}
	}
	return f
}

// head returns the bytes by which f is told from everything else that may be stored: up to the id where there is
// one. Together with the length they are all that a comparison needs.
func (f Found) head() []byte {
	if f.Kind == record.Value || f.Kind == record.Failure {
		return f.Raw[:record.HeadLen]
	}
	return f.Raw
}

// id names what was found: the fill, or what the bytes of another program hash to.
func (f Found) id() record.ID {
	if f.Kind == record.Value {
		return f.Header.ID
	}
	sum := sha256.Sum256(f.Raw)
	return record.ID(sum[:])
}

// millis is d as PX takes it: whole milliseconds, at least one.
func millis(d time.Duration) int64 { return max(d.Milliseconds(), 1) }
