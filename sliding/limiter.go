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
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// LimiterOptions say how much is allowed. Limit is required.
type LimiterOptions struct {
	// Limit is how many calls a key has in each window, 1 to 2^31-1. The window is the namespace's TTL.
	Limit int

	// Sliding counts the previous window's calls in proportion to how much of that window still lies within a window's length, as if
	// they had been evenly spread. So any part y of a window's length admits at most 1+y times the limit: never twice the limit at once,
	// but nearly that over a whole window's length, if the limit is used up at the end of one window and, as that fades, again in the
	// next. It can also refuse, for up to a window, calls that a log of all calls would admit. Without Sliding windows are fixed: one
	// begins with the first call, and around its end up to twice the limit can pass at once.
	//
	// If Redis's clock goes back, admitted calls keep counting, and a key waits for up to two windows. If it jumps forward, they are
	// forgotten as if that time had passed.
	Sliding bool

	// Strict admits at most the limit in any stretch of a window's length. A call counts until it is a window old, and for up to a 16th
	// of a window longer. It cannot be combined with Sliding.
	Strict bool

	// Lease lets each process take a share of the limit for that long and admit calls without a round trip. It pays off if a process has a
	// hundred calls of a key in that time, for example 2,000 calls a second with 50 ms. At most a 20th of the window. Zero asks Redis for
	// each call. See [Limiter] for what holds with a Lease, and close the limiter at the end.
	Lease time.Duration

	// FailOpen allows everything while Redis cannot be asked, and for a key whose content no limiter wrote (mayfly.ErrForeign: another type,
	// other text, or a count without a TTL). Such a key is left alone until somebody deletes it. Without FailOpen nothing is allowed in these
	// cases. Allow returns the error either way. A call that is itself wrong, for example for more than Limit, is never allowed.
	FailOpen bool

	// RedisTimeout is how long a call waits for Redis at most, whatever the client's own timeouts are. After a few such calls Redis is not
	// asked for a while, as with a store: see [Options].RedisTimeout. Zero is 150 ms.
	RedisTimeout time.Duration
}

// Limiter counts calls in Redis for all processes together. Counting and setting the TTL are one step, so no counter is without a TTL. A
// Limiter is safe for concurrent use.
//
// # Shares
//
// With [LimiterOptions.Lease], one trip takes a share of what is left, sized by the process's recent calls, and the process admits calls from it by
// itself until the lease ends. Redis counts the share when it is given, in the current window, and the share ends no later than that window (in a
// strict one, no later than its 16th). So the promises of LimiterOptions about windows hold for all processes together, with or without a Lease:
// each fixed window admits at most the limit, a part y of a sliding window 1+y times the limit, and any stretch of a strict one the limit. An
// Allow counts as admitted at some instant between its beginning and its end.
//
// The unused calls of a share come back when the share ends or the limiter is closed. If a process is killed, the calls it had not used of one
// share per key are lost, and count until their window ends; all shares of a key together are at most a 32nd of the limit. A key starts over if
// it is deleted, lost at a failover, or if Redis's clock jumps forward; the shares that are out at that moment come on top of the new limit,
// until their leases end. While Redis is away, processes use up the shares they have.
//
// When nothing is left, a process refuses calls by itself for up to the length of a lease, or for a second if no shares can come back.
// Remaining, ResetAfter and RetryAfter are what the last trip saw, less what this process has admitted since. RetryAfter is for the number of
// calls asked for. After a refusal without a trip it may be too short, because other processes may have been admitted since that trip.
//
// If the limit allows fewer than 100 calls in the time of a lease, or no share is left, each call asks Redis.
type Limiter[K comparable] struct {
	room         keyspace.Room[K, int64]
	redis        sendonce.Bounded
	opt          LimiterOptions
	script       sendonce.Script
	limit, whole any        // as the script expects them; whole is the window or, if strict, one of its parts
	part         int64      // whole in ms
	numbers      int        // how many numbers a counter has
	leases       *leases[K] // nil if each call asks Redis
}

// Decision is the answer of [Limiter.Allow].
type Decision struct {
	Allowed    bool
	Limit      int
	Remaining  int           // calls that would still be allowed now
	ResetAfter time.Duration // until all the limit is there again, if nobody calls
	RetryAfter time.Duration // zero if allowed; otherwise when as many are admitted, if nobody else asks (see [Limiter] for a Lease)
}

// NewLimiter returns a limiter whose counters live in ns. It does no I/O. The namespace's TTL is the window, which must be at least a
// second if it is sliding or strict. Codec, Plain, Clone, Cost, Jitter and Local must not be set: a counter has no use for them.
func NewLimiter[K comparable](ns mayfly.Namespace[K, int64], o LimiterOptions) (*Limiter[K], error) {
	room, c := keyspace.OwnForm("sliding", ns, "a counter has a form of its own, and no copies")
	c.Refuse((o.Sliding || o.Strict) && 0 < ns.TTL && ns.TTL < time.Second, "Namespace.TTL must be at least 1s for a window that slides, got %v", ns.TTL)
	c.Refuse(o.Sliding && o.Strict, "LimiterOptions.Sliding and Strict are two ways to count: set one")
	c.Refuse(o.Limit < 1 || o.Limit > math.MaxInt32, "LimiterOptions.Limit must be 1 to %d, got %d", math.MaxInt32, o.Limit)
	if o.Lease != 0 {
		c.Wrap(check.TTL("LimiterOptions.Lease", o.Lease))
		c.Refuse(o.Lease > ns.TTL/20, "LimiterOptions.Lease must be at most a 20th of Namespace.TTL, %v, got %v: shares that are out for longer would hold too much of the limit", ns.TTL/20, o.Lease)
	}
	c.Refuse(!ns.Jitter.IsZero(), "Namespace.Jitter must be zero: a window has one length")
	c.Refuse(ns.Local != nil, "Namespace.Local must be nil: a counter has no copies")
	if o.RedisTimeout != 0 {
		c.Wrap(check.TTL("LimiterOptions.RedisTimeout", o.RedisTimeout))
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	by, whole := fixedWindow, ns.TTL.Milliseconds()
	switch {
	case o.Sliding:
		by = slidingWindow
	case o.Strict:
		by, whole = strictWindow, (whole+strictParts-1)/strictParts
	}
	l := &Limiter[K]{
		room: room, redis: sendonce.To(ns.Redis, ns.Observer, room.Name, o.RedisTimeout), opt: o, script: by.script(),
		limit: strconv.Itoa(o.Limit), whole: strconv.FormatInt(whole, 10), part: whole, numbers: by.numbers,
	}
	if fits(int64(o.Limit), o.Lease, ns.TTL) {
		l.leases = newLeases[K](by.leaseScript(), o.Lease, l.giveBack)
	}
	return l, nil
}

// Allow asks for n calls of key, all or none; n of 0 only looks. It is one round trip, sent once, or none with
// [LimiterOptions.Lease]: if the reply is lost, the calls may have been counted, but never twice; the error is then
// mayfly.ErrUnknownOutcome. The decision is then what [LimiterOptions.FailOpen] says, as with every error of Redis and of what the key holds.
//
// The caller's mistakes allow nothing, whatever FailOpen says, and never reach Redis: n below 0 or above the limit, and a key that has no valid
// name in Redis, such as an empty one.
func (l *Limiter[K]) Allow(ctx context.Context, key K, n int) (Decision, error) {
	if l.leases != nil && 0 <= n && n <= l.opt.Limit {
		if d, e, known := l.leases.decide(key, n); known {
			l.tell(ctx, e.full, d, nil)
			return d, nil
		}
	}
	full, err := l.full(key, n)
	if err != nil { // the caller's fault, not that of Redis
		return Decision{Limit: l.opt.Limit}, err
	}
	var d Decision
	if l.leases != nil {
		d, err = l.lease(ctx, key, full, n)
	} else {
		d, err = l.direct(ctx, full, n)
	}
	if err != nil {
		d = Decision{Limit: l.opt.Limit, Allowed: l.opt.FailOpen}
		err = l.room.Fail("allow", full, err)
	}
	l.tell(ctx, full, d, err)
	return d, err
}

// Close gives back the shares that the process has leased (see [LimiterOptions.Lease]) and ends the limiter's background work. It makes one trip
// per 500 keys, each with [LimiterOptions.RedisTimeout]. If some shares could not be given back, the error says how many calls of how many keys may
// stay counted and for how long, and wraps the cause. Another Close tries again. Redis takes shares back until eight leases after their end; after
// that Close returns nil. If ctx ended during the trips, the error also wraps ctx's error.
//
// After Close each call is one round trip. Without a Lease there is nothing to close.
func (l *Limiter[K]) Close(ctx context.Context) error {
	if l.leases == nil {
		return nil
	}
	return l.leases.close(ctx)
}

// full returns the full name of key, or an error if n is out of range.
func (l *Limiter[K]) full(key K, n int) (string, error) {
	full, err := l.room.FullKey(key)
	if err != nil {
		return "", l.room.Nameless("allow", key, err)
	}
	if n < 0 || n > l.opt.Limit {
		return "", l.room.Fail("allow", full, fmt.Errorf("asked for %d calls, where the limit is %d", n, l.opt.Limit))
	}
	return full, nil
}

// direct asks for n calls in a trip of their own.
func (l *Limiter[K]) direct(ctx context.Context, full string, n int) (Decision, error) {
	reply, err := l.script.IntsOnce(ctx, l.redis, full, n, l.limit, l.whole)
	if err == nil && len(reply) != 4 {
		err = l.odd(full, reply)
	}
	if err != nil {
		return Decision{}, l.failure(ctx, full, err)
	}
	return l.read(n, reply), nil
}

// failure explains the error of a trip.
func (l *Limiter[K]) failure(ctx context.Context, full string, err error) error {
	if errors.Is(err, mayfly.ErrForeign) {
		return err
	}
	return sendonce.Outcome(ctx, l.redis, full, err)
}

// odd explains a reply that is not a decision.
func (l *Limiter[K]) odd(full string, reply []int64) error {
	if len(reply) != 1 {
		return fmt.Errorf("a script answered %v", reply)
	}
	holds := "a text"
	if reply[0] == endless {
		holds = "a count without a TTL, or a text without one,"
	}
	return fmt.Errorf("the key %q holds %s of %w: delete it, or give the limiter a prefix of its own", full, holds, mayfly.ErrForeign)
}

func (l *Limiter[K]) tell(ctx context.Context, full string, d Decision, err error) {
	if l.room.Observer == nil {
		return
	}
	e := mayfly.Event{Kind: mayfly.KindLimit, Outcome: mayfly.OutcomeOK, Namespace: l.room.Name, Key: full, Err: err}
	switch {
	case err != nil:
		e.Outcome = mayfly.OutcomeFailed
	case !d.Allowed:
		e.Outcome = mayfly.OutcomeRefused
	}
	l.room.Observer.Observe(ctx, e)
}

// read makes a decision from a script's answer for n calls.
func (l *Limiter[K]) read(n int, reply []int64) Decision {
	d := Decision{Allowed: reply[0] == 1, Limit: l.opt.Limit}
	if l.opt.Sliding {
		l.slide(&d, reply)
	} else {
		d.Remaining, d.ResetAfter = max(l.opt.Limit-int(reply[1]), 0), millis(reply[2])
	}
	if !d.Allowed {
		d.RetryAfter = l.retry(n, reply)
	}
	return d
}

// slide reads a sliding window's answer: the calls admitted in this window and in the one before, and how much of this one has elapsed.
func (l *Limiter[K]) slide(d *Decision, reply []int64) {
	used, before, over, window := reply[1], reply[2], reply[3], l.room.TTL.Milliseconds()
	weighed := used + (before*(window-over)+window-1)/window
	d.Remaining = int(max(int64(l.opt.Limit)-weighed, 0))
	switch {
	case used > 0:
		d.ResetAfter = millis(2*window - over)
	case before > 0:
		d.ResetAfter = millis(window - over)
	}
}

// retry returns how long it takes until n calls fit if nobody else calls. A strict window's reply says so for the calls that were asked for, unless
// it has the counts.
func (l *Limiter[K]) retry(n int, reply []int64) time.Duration {
	if l.opt.Sliding {
		return millis(roomIn(int64(n), int64(l.opt.Limit), reply[1], reply[2], reply[3], l.room.TTL.Milliseconds()))
	}
	if len(reply) > leaseReply {
		return millis(partsIn(int64(n), int64(l.opt.Limit), reply[1], reply[leaseReply+1:], l.part) - reply[leaseReply])
	}
	return millis(reply[3])
}

// roomIn returns the milliseconds until n calls fit if nobody else calls.
func roomIn(n, limit, used, before, over, window int64) int64 {
	// fits returns the time in a window from which on n calls fit. The calls of whole count fully, and those of fading fade.
	fits := func(whole, fading int64) int64 {
		if fading == 0 {
			return 0
		}
		return window - (limit-n-whole)*window/fading
	}
	if used+n <= limit {
		return max(fits(used, before)-over, 1)
	}
	return window - over + max(fits(0, used), 0)
}

// partsIn returns how many milliseconds after the beginning of its part n calls fit into a strict window, if nobody else calls.
func partsIn(n, limit, used int64, counts []int64, part int64) (fit int64) {
	for p := len(counts) - 1; p >= 0 && used+n > limit; p-- {
		if counts[p] > 0 {
			used, fit = used-counts[p], int64(len(counts)-p)*part
		}
	}
	return fit
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
