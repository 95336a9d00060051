package mayfly

import (
	"context"
	"time"
)

// Event is something that happened in a cache, for an operator to count, time or read.
//
// A hit in the local tier is not an Event, since an Event would cost as much as the hit. Such hits are counted: see [Observer],
// and the Stats of caches and of [Local].
type Event struct {
	Kind      Kind          // what was done
	Outcome   Outcome       // how it ended
	Namespace string        // Namespace.Name: bounded, fit for a label
	Key       string        // the key in Redis, if the Event is about one, or the prefixes of the local tier: for logs and traces, never for a label
	Took      time.Duration // how long it took, if that was measured
	N         int           // how many keys, values or bytes, if not one
	Err       error         // why it failed
}

// Observer sees Events. Observe runs on the caller's path, or in the background: it must be quick, must not block or panic, and is called from many
// goroutines at once. ctx is the context of the operation, for trace ids; it may already be done.
//
// An Observer that also counts hits in the local tier has a second method, which [Counters] has:
//
//	ObserveLocal(namespace string, hits func() uint64)
//
// It is called once by each cache that has a local tier, when the cache is made; hits returns how many hits it has had so far, at any time,
// also after the cache was closed.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// ObserverFunc is a function as an Observer.
type ObserverFunc func(ctx context.Context, e Event)

// Observe calls f.
func (f ObserverFunc) Observe(ctx context.Context, e Event) { f(ctx, e) }

// Kind says what was done. Its text is stable and bounded, fit for a label.
type Kind uint8

const (
	KindRead      Kind = iota + 1 // a caller asked for a key, and it was not a local hit
	KindLoad                      // the loader ran
	KindWait                      // a caller waited for a load of another process
	KindFill                      // a loaded value was offered to Redis
	KindRefresh                   // a value was renewed before it expired
	KindWrite                     // a value was set by the caller
	KindRemoval                   // keys were deleted by the caller
	KindBackend                   // Redis did not answer, or answered with an error
	KindBreaker                   // a server is not asked any more, as it does not answer (failed), or is again (ok)
	KindCoherence                 // the local tier changed its rung, which is Outcome: see [LocalStats]
	KindWarning                   // the configuration is accepted, but dangerous: Err says why
	KindLimit                     // a limiter was asked
	KindJoin                      // a caller waits for a load that another caller of this process began
	KindLag                       // Took is the delay from a change in Redis until the local tier heard of it, measured several times a second
	KindQueue                     // N calls waited until other calls of this process gave a connection to Redis back, the first of them for Took
	KindAdmission                 // a load waited for its turn at the origin, for Took; outcome dropped: all its callers had left
)

var kinds = [...]string{KindRead: "read", KindLoad: "load", KindWait: "wait", KindFill: "fill", KindRefresh: "refresh", KindWrite: "write",
	KindRemoval: "removal", KindBackend: "backend", KindBreaker: "breaker", KindCoherence: "coherence", KindWarning: "warning", KindLimit: "limit",
	KindJoin: "join", KindLag: "lag", KindQueue: "queue", KindAdmission: "admission"}

// String returns the kind's stable name.
func (k Kind) String() string {
	if int(k) < len(kinds) && kinds[k] != "" {
		return kinds[k]
	}
	return "unknown"
}

// Outcome says how something ended. The text is stable and bounded, fit for a label.
type Outcome string

const (
	OutcomeOK       Outcome = "ok"
	OutcomeFailed   Outcome = "failed"
	OutcomeHitRedis Outcome = "hit_redis" // read: fresh from Redis
	OutcomeStale    Outcome = "stale"     // read: past its TTL, within its stale window
	OutcomeNegative Outcome = "negative"  // read: remembered as absent at the origin
	OutcomeMiss     Outcome = "miss"      // read: had to be loaded
	OutcomeBypass   Outcome = "bypass"    // read: Redis could not be asked, or not for this request: Err says why
	OutcomeRefused  Outcome = "refused"   // fill: the key was deleted or replaced meanwhile, or is held; limit: there were too many calls
	OutcomeTimedOut Outcome = "timed_out"
	OutcomeDropped  Outcome = "dropped" // a bound was reached
)
