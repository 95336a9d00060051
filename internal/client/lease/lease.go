// Package lease is the one stampede guard: it decides, on bytes, who loads a missing key and whether the result may still be stored.
//
// The right to load is a lease that lives where the value will be: in the value's own key. So it needs no second key in the same slot, and
// whatever removes the key (DEL, expiry, eviction, FLUSHDB), from any program, also ends the right to fill it. A key passes through these
// steps:
//
//	Await   callers without the claim poll, gently, until there is something
//
// A read writes nothing; only a miss does.
//
// A request may reach Redis long after its client gave up on it. So a claim is sent only once. If its reply is lost, it is sent again with
// a new token; the old one, whenever it arrives, is a lease without an owner, which costs readers [TTL] at most. Every step after a claim
// compares the token, and so may be repeated. Set is sent once. A DEL may be repeated: one that arrives late costs a load, but never
// correctness.
//
// If Redis cannot take part (it is down, hung, read-only or out of memory, or the key holds a list), every method returns the error, and
// the caller loads without storing. Nothing here knows codecs or loaders.
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

	// Timeout is how long one method may wait for Redis, whatever the client's own settings. For Clear it applies to each command.
	Timeout time.Duration

	// Plain keeps leases in a key beside the value, for values that other programs read. Then a DEL by another program does not end the
	// right to fill.
	Plain bool

	// Hold is how long a tombstone that Delete leaves refuses fills. Zero: Delete leaves none.
	Hold time.Duration

	// Breaker is told when the breaker of a server opens and closes. May be nil.
	Breaker func(server string, open bool)

	// Wait and Waited apply to calls that wait for other calls of this process: see nodes.Options.
	Wait   time.Duration
	Waited func(ctx context.Context, took time.Duration, n int, err error)

	// Moved is called when a slot of a cluster turns out to have moved, before anything else is done about it. May be nil.
	Moved func()

	// Start runs calls that go-redis ends in its own time. It reports false if the owner is closed. May be nil: see nodes.Options.
	Start func(func()) bool

	// Closing is closed when the owner is closed: see nodes.Options. May be nil.
	Closing <-chan struct{}

	// Pushes returns a channel that is signalled when key has changed, and a function that ends the signals. It returns nil if changes are not
	// pushed now. A push that the local tier hears is faster than any polling. May be nil.
	Pushes func(key string) (changed <-chan struct{}, stop func())
}

// CanGuard returns an error if the keys of a client cannot be guarded.
func CanGuard(rdb redis.UniversalClient, plain bool) error {
	if _, ring := rdb.(*redis.Ring); ring && plain {
		return errors.New("Namespace.Redis is a redis.Ring, and Namespace.Plain is set: the lease of a plain value is a key beside it, which a Ring may put on another shard; use a cluster, or leave Plain out")
	}
	return nil
}

// Guard is the stampede guard for one kind of value. It starts no goroutine, except for reads that travel together, while a caller waits.
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

// State says what a key holds from the guard's point of view.
type State uint8

const (
	Absent  State = iota // nothing: claim it
	Present              // bytes, which the caller may be able to use
	Loading              // another caller's lease: await it
	Held                 // a tombstone: load and do not store
	Failed               // the latest load failed: a later caller claims it
)

// Found is what a key held.
type Found struct {
	State State

	// If State is Present, Raw is what was stored; Kind, Header and Body are its parts.
	Raw    []byte
	Kind   record.Kind
	Header record.Header
	Body   []byte

	// Lease is the holder's token: the key's own if State is Loading, or the one beside a plain value, which only Await sees.
	Lease []byte

	// Failure is the latest failed load of this key: if State is Failed, or if it is Loading and the holder knows of one.
	Failure record.Failed

	// Left is the TTL at the time of the reply, if it was asked for: NoTTL if there is none, and Gone if the value expired between the two
	// commands.
	Left time.Duration

	// Reckoned is the TTL computed from the end that the record states, when Left was not asked for; zero if it is not known. It may be
	// wrong: use it to decide whether to hand out what is there, and for nothing else.
	Reckoned time.Duration

	// Spent is how much of Options.Timeout the read took, without the time it waited for other calls.
	Spent time.Duration

	loan nodes.Loan // has the memory of Raw; nil: it is the caller's own
}

// GiveBack gives Raw's memory back for another read, if it was borrowed. Call it once, and only if nothing holds any part of Raw or Body: not the
// cache, and not a writer that failed.
func (f Found) GiveBack() {
	if f.loan != nil {
		f.loan.GiveBack()
	}
}

// Holder returns the ID of the load that f's lease belongs to; zero if there is none.
func (f Found) Holder() (id record.ID) {
	if len(f.Lease) >= record.HeadLen {
		copy(id[:], f.Lease[record.HeadLen-len(id):])
	}
	return id
}

// Values of Found.Left that are not times. Zero means "not asked".
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

// head returns the bytes that identify f: everything up to the ID if it has one. The head and the length are all that a comparison needs.
func (f Found) head() []byte {
	if f.Kind == record.Value || f.Kind == record.Failure {
		return f.Raw[:record.HeadLen]
	}
	return f.Raw
}

// id identifies what was found: the ID of its fill, or a hash of the bytes of another program.
func (f Found) id() record.ID {
	if f.Kind == record.Value {
		return f.Header.ID
	}
	sum := sha256.Sum256(f.Raw)
	return record.ID(sum[:])
}

// millis returns d for PX: in whole milliseconds, at least one.
func millis(d time.Duration) int64 { return max(d.Milliseconds(), 1) }
