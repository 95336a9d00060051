package sliding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
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

	// Sliding weighs what was admitted in the window before by how much of it is still within a window's length, as if those calls
	// had been evenly spread. So a part y of a window's length admits at most 1+y times the limit, wherever it lies: never twice the
	// limit at once, but nearly that in a whole window's length, if the limit is used at the end of one window and, as that fades,
	// again in the next. It can also refuse, for up to a window, what a log of all calls would admit. Without it windows are fixed: one
	// begins with the first call, and around its end up to twice the limit can pass at once.
	//
	// If Redis's clock goes back, what was admitted counts on, and a key waits for up to two windows; if it jumps forward, what was
	// admitted is forgotten as if that time had passed.
	Sliding bool

	// Strict admits at most the limit in any stretch of a window's length, wherever it lies. A call counts until it is a window old, and for
	// up to a 16th of one longer. Not with Sliding.
	Strict bool

	// FailOpen allows everything while Redis cannot be asked, and for a key that holds what no limiter wrote (mayfly.ErrForeign: another type or text,
	// or a count without a TTL), which is left alone until somebody deletes it. Without FailOpen nothing is allowed then. Allow returns
	// the error either way.
	FailOpen bool

	// RedisTimeout is how long a call waits for Redis at most, whatever the client's own timeouts are; and soon nothing, as for a store's:
	// see [Options].RedisTimeout. Zero is 150 ms.
	RedisTimeout time.Duration
}

// Limiter counts calls in Redis, for all processes together. Counting and the counter's end are one step: there is no
// counter without a TTL. It is safe for concurrent use.
type Limiter[K comparable] struct {
	room         keyspace.Room[K, int64]
	redis        sendonce.Bounded
	opt          LimiterOptions
	script       sendonce.Script
	limit, whole any // as the script takes them: whole is the window, or a part of a strict one
}

// Decision is what [Limiter.Allow] says.
type Decision struct {
	Allowed    bool
	Limit      int
	Remaining  int           // calls that would still be allowed now
	ResetAfter time.Duration // until all the limit is there again, if nobody calls
	RetryAfter time.Duration // zero if allowed; else when to ask for as much again
}

// NewLimiter returns a limiter whose counters live in ns. It does no I/O. The namespace's TTL is the window, and at least a
// second if it is sliding or strict. The namespace has no Codec, Plain, Clone, Cost, Jitter and Local tier, which would mean nothing.
func NewLimiter[K comparable](ns mayfly.Namespace[K, int64], o LimiterOptions) (*Limiter[K], error) {
	room, c := keyspace.OwnForm("sliding", ns, "a counter has a form of its own, and no copies")
	c.Refuse((o.Sliding || o.Strict) && 0 < ns.TTL && ns.TTL < time.Second, "Namespace.TTL must be at least 1s for a window that slides, got %v", ns.TTL)
	c.Refuse(o.Sliding && o.Strict, "LimiterOptions.Sliding and Strict are two ways to count: set one")
	c.Refuse(o.Limit < 1 || o.Limit > math.MaxInt32, "LimiterOptions.Limit must be 1 to %d, got %d", math.MaxInt32, o.Limit)
	c.Refuse(!ns.Jitter.IsZero(), "Namespace.Jitter must be zero: a window has one length")
	c.Refuse(ns.Local != nil, "Namespace.Local must be nil: a counter has no copies")
	if o.RedisTimeout != 0 {
		c.Wrap(check.TTL("LimiterOptions.RedisTimeout", o.RedisTimeout))
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	script, whole := fixedWindow, ns.TTL.Milliseconds()
	switch {
	case o.Sliding:
		script = slidingWindow
	case o.Strict:
		script, whole = strictWindow, (whole+strictParts-1)/strictParts
	}
	return &Limiter[K]{room, sendonce.To(ns.Redis, ns.Observer, room.Name, o.RedisTimeout), o, script, strconv.Itoa(o.Limit), strconv.FormatInt(whole, 10)}, nil
}

// Allow asks for n calls of key, all or none; n of 0 only looks. It is one round trip, sent once: if the reply is lost, the
// calls may have been counted, but never twice; the error is then mayfly.ErrUnknownOutcome. Whatever the error, the
// decision is what [LimiterOptions.FailOpen] says.
func (l *Limiter[K]) Allow(ctx context.Context, key K, n int) (Decision, error) {
	d := Decision{Limit: l.opt.Limit}
	full, err := l.room.FullKey(key)
	if err == nil && (n < 0 || n > l.opt.Limit) {
		err = fmt.Errorf("asked for %d calls, where the limit is %d", n, l.opt.Limit)
	}
	if err != nil { // the caller's fault, not Redis's
		return d, l.room.Fail("allow", key, err)
	}
	if d, err = l.ask(ctx, full, n); err != nil {
		d.Limit, d.Allowed = l.opt.Limit, l.opt.FailOpen
		if !errors.Is(err, mayfly.ErrForeign) {
			err = sendonce.Outcome(ctx, l.redis, full, err)
		}
		err = l.room.Fail("allow", key, err)
	}
	l.tell(ctx, full, d, err)
	return d, err
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
		e.Outcome = mayfly.OutcomeDenied
	}
	l.room.Observer.Observe(ctx, e)
}

func (l *Limiter[K]) ask(ctx context.Context, full string, n int) (Decision, error) {
	reply, err := l.script.IntsOnce(ctx, l.redis, full, n, l.limit, l.whole)
	if err != nil {
		return Decision{}, err
	}
	if len(reply) == 1 {
		holds := "a text"
		if reply[0] == endless {
			holds = "a count without a TTL, or a text without one,"
		}
		return Decision{}, fmt.Errorf("the key %q holds %s of %w: delete it, or give the limiter a prefix of its own", full, holds, mayfly.ErrForeign)
	}
	if len(reply) != 4 {
		return Decision{}, fmt.Errorf("a script answered %v", reply)
	}
	d := Decision{Allowed: reply[0] == 1, Limit: l.opt.Limit}
	if l.opt.Sliding {
		l.slide(&d, n, reply)
		return d, nil
	}
	d.Remaining, d.ResetAfter = max(l.opt.Limit-int(reply[1]), 0), millis(reply[2])
	if !d.Allowed {
		d.RetryAfter = max(millis(reply[3]), time.Millisecond) // the last millisecond of a window has none left
	}
	return d, nil
}

// slide reads a sliding window: what was admitted in this one and in the one before, and how much of this one is over.
func (l *Limiter[K]) slide(d *Decision, n int, reply []int64) {
	used, before, over, window := reply[1], reply[2], reply[3], l.room.TTL.Milliseconds()
	limit := int64(l.opt.Limit)
	weighed := used + (before*(window-over)+window-1)/window
	d.Remaining = int(max(limit-weighed, 0))
	switch {
	case used > 0:
		d.ResetAfter = millis(2*window - over)
	case before > 0:
		d.ResetAfter = millis(window - over)
	}
	if !d.Allowed {
		d.RetryAfter = millis(roomIn(int64(n), limit, used, before, over, window))
	}
}

// roomIn returns in how many milliseconds n calls fit, if nobody else calls.
func roomIn(n, limit, used, before, over, window int64) int64 {
	// fits returns from which part of a window on n fit beside what counts whole, the rest fading.
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

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// counter returns the script of a limiter whose counts are so many numbers. It begins with what k holds of them, and how long, or answers with one
// number that they are somebody else's. What another way to count wrote, which this prefix had before, counts for nothing.
func counter(numbers int, source string) sendonce.Script {
	return sendonce.NewScript(strings.NewReplacer("$numbers", strconv.Itoa(numbers), "$endless", strconv.Itoa(endless)).Replace(
		`local held, left = redis.call('GET', KEYS[1]), redis.call('PTTL', KEYS[1])
if held then
	if left == -1 then return {$endless} end
	local _, numbers = string.gsub(held, '%d+', '')
	if not string.find(held, '^[%d ]+$') or numbers ~= 1 and numbers ~= 3 and numbers ~= 18 or numbers == 1 and #held > 10 then return {0} end
	if numbers ~= $numbers then held, left = false, -2 end
end
` + source))
}

// endless is the answer of a counter that finds a key without a TTL.
const endless = 1

// fixedWindow  k, n, limit, window: admits n if they fit. It answers with whether, what is used, and what is left of the window.
// What ends later than a window from now was begun before the clock went back.
var fixedWindow = counter(1, `local n, used = tonumber(ARGV[1]), tonumber(held or 0)
if left > tonumber(ARGV[3]) then
	left = tonumber(ARGV[3])
	redis.call('SET', KEYS[1], used, 'PX', left)
end
local ok = used + n <= tonumber(ARGV[2]) and 1 or 0
if ok == 1 and n > 0 then
	if left < 0 then
		left = tonumber(ARGV[3])
		redis.call('SET', KEYS[1], used + n, 'PX', left)
	else
		redis.call('INCRBY', KEYS[1], n)
	end
	used = used + n
end
left = math.max(left, 0)
return {ok, used, left, left}`)

// slidingWindow  k, n, limit, window: the same for windows that begin at multiples of their length. k holds which
// window it is, and what was admitted in it and in the one before. A clock that went back, as at a failover, by little, waits for the
// window to begin; by more, all that was admitted counts in the window that it went back to.
var slidingWindow = counter(3, `local n, limit, window = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local index, over = math.floor(now / window), now % window
local used, before, back = 0, 0, false
local at, u, b = string.match(held or '', '^(%d+) (%d+) (%d+)$')
at = tonumber(at)
if at == index + 1 then index, over = at, 0 end
if at == index then
	used, before = tonumber(u), tonumber(b)
elseif at == index - 1 then
	before = tonumber(u)
elseif at and at > index then
	used, back = tonumber(u) + tonumber(b), true
end
local ok = used + n + math.ceil(before * (window - over) / window) <= limit and 1 or 0
if ok == 1 then used = used + n end
if ok == 1 and n > 0 or back then
	redis.call('SET', KEYS[1], string.format('%d %d %d', index, used, before), 'PX', 2 * window - over)
end
return {ok, used, before, over}`)
