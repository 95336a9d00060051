package nodes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A record says when it ends, by its server's clock. A reader that knows that clock need not send PTTL with each read, but only before it
// acts on the answer. So one read a second also sends PTTL and TIME. That reveals the server's time, and whether records agree with it:
// whether the end they state is the one PTTL reports. They disagree if another program changed a TTL, or if TIME and the TTLs use different
// clocks, as in miniredis. The time left is computed only while both are known and agree, and are not older than [relied].
//
// The server's time is known only within an interval: from the moment TIME was sent to the moment its answer arrived. A read is judged by
// the latest possible time, and a write gets the earliest possible end. A record that states too early an end costs a question; one that
// states too late an end would not be renewed.

const (
	calibration = time.Second           // the time between two calibrations
	relied      = 2 * time.Second       // how long a calibration can be relied on
	tooEarly    = 2 * time.Second       // how far a record may be off: after its end was computed it may have waited for its turn
	tooLate     = 5 * time.Millisecond  // the same for a record that ends before it says so
	firstRetry  = 10 * time.Millisecond // after a calibration that met no record
	silence     = time.Minute           // how long a server that does not tell its time is left alone
	wary        = 10                    // how many looks in a row must agree after one that met a record which says its end too late
)

// clock is what is known of one server's clock. The zero clock knows nothing.
type clock struct {
	known   atomic.Pointer[reading]
	next    atomic.Int64 // when the next calibration is due, as an instant; zero: now
	wanted  atomic.Bool  // the next trip that asks for a PTTL also sends TIME
	detours atomic.Int64 // how many answers came from another server

	mu     sync.Mutex // guards the fields below, and writes of known
	vain   int        // calibrations in a row that met no record
	wary   int        // how many looks must still agree before records are believed again
	silent int64      // until this instant no separate TIME is sent, since the server did not tell its time; zero: never
	lost   int        // trips with TIME in a row that got no answer at all
	proven bool       // since the last of these, TIME was sent by itself and answered
}

// reading is one look at the clock.
type reading struct {
	sent   int64 // our instant before the question was sent
	heard  int64 // our instant after the answer arrived
	millis int64 // the server's time at the answer, in milliseconds since 1970
	met    bool  // it has been compared with a record
	agrees bool  // it has met a record that agrees, and no late one was met lately; before it meets one, the value of the previous reading
}

// latest returns the latest that the server's time can be at an instant, and earliest the earliest, unless somebody sets the clock.
func (r *reading) latest(now int64) int64   { return r.millis + (now-r.sent)/int64(time.Millisecond) }
func (r *reading) earliest(now int64) int64 { return r.millis + (now-r.heard)/int64(time.Millisecond) }

// calibrates reports whether the caller must make sure that the time is asked for.
func (c *clock) calibrates(now int64) bool {
	next := c.next.Load()
	return (next == 0 || now >= next) && c.next.CompareAndSwap(next, now+int64(calibration))
}

// goesAlong reports whether TIME may share a trip with other commands: not after such a trip got no answer, until TIME by itself is
// answered.
func (c *clock) goesAlong() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost == 0 || c.proven
}

// told stores the server's time, from the answer to a TIME sent at an instant, by itself or with other commands.
func (c *clock) told(millis, sent int64, alone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := instant(time.Now())
	r := &reading{sent: sent, heard: now, millis: millis}
	if was := c.known.Load(); was != nil {
		r.agrees = was.agrees
	}
	c.silent = 0
	c.known.Store(r)
	if c.proven = alone; !alone {
		c.lost = 0
	} else if c.lost > 0 {
		c.lost = 1
	}
	if !r.agrees || alone && c.lost > 0 { // until a record is met: soon at first, then less and less often
		c.next.Store(now + int64(min(firstRetry<<min(c.vain, 10), calibration)))
		c.vain++
	}
}

// compared takes into account by how many milliseconds a record differs from what PTTL and TIME together said.
func (c *clock) compared(off int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.known.Load()
	if was == nil {
		return
	}
	r := *was
	if off > tooLate.Milliseconds() {
		c.wary = wary
	} else if c.wary > 0 && !was.met {
		c.wary--
	}
	r.agrees = c.wary == 0 && (off >= -tooEarly.Milliseconds() || was.met && was.agrees)
	r.met = true
	c.vain = 0
	c.known.Store(&r)
	c.next.Store(r.sent + int64(calibration))
}

// untold notes that the server did not tell its time and must not be asked again for a while.
func (c *clock) untold(pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(pause)
}

// leave is untold for a caller that holds mu.
func (c *clock) leave(pause time.Duration) {
	c.silent = instant(time.Now().Add(pause))
	c.next.Store(c.silent)
}

// unanswered notes that a trip with TIME got no answer. TIME may be to blame: some proxies close the connection, or do not reply. So TIME
// is sent by itself next, where no reader waits for it; after a second such trip it is not sent for a while.
func (c *clock) unanswered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost++
	c.proven = false
	if c.lost == 1 {
		c.leave(calibration)
	} else {
		c.leave(silence)
	}
}

// Clock is what was known of a server's clock before a read there.
type Clock struct {
	of      *clock
	detours int64
}

// Clock returns what is known of the server's clock. ok is false if a read must ask for PTTL: because nothing is known, or because the
// clock is due to be calibrated, which that read then does.
func (n *Node) Clock() (c Clock, ok bool) {
	if n.clock == nil {
		return c, false
	}
	c = Clock{n.clock, n.clock.detours.Load()}
	now := instant(time.Now())
	if n.clock.calibrates(now) {
		if n.clock.goesAlong() {
			n.clock.wanted.Store(true)
			return c, false
		}
		n.start(func() { n.askTime(context.Background()) })
	}
	r := n.clock.known.Load()
	return c, r != nil && r.agrees && now-r.sent <= int64(relied)
}

// Now returns the latest that the server's time can be, in milliseconds since 1970, to judge a read that was made after c was returned. ok
// is false if the answer may have come from another server, or if the clock is not known.
func (c Clock) Now() (millis int64, ok bool) {
	r := c.of.known.Load()
	if r == nil || !r.agrees || c.of.detours.Load() != c.detours {
		return 0, false
	}
	return r.latest(instant(time.Now())), true
}

// Compare takes the answers of one trip, made after c was returned: when a record says that it ends, how much time PTTL said that it had
// left, and the server's time.
func (c Clock) Compare(ends int64, left time.Duration, now int64) {
	if c.of != nil && ends != 0 && left > 0 && now != 0 && c.of.detours.Load() == c.detours {
		c.of.compared(ends - left.Milliseconds() - now)
	}
}

// AskTimed is Ask, and also sends TIME if that is due. It returns the server's time in milliseconds since 1970, or zero if it was not told.
func (n *Node) AskTimed(ctx context.Context, cmds ...redis.Cmder) (now int64, err error) {
	at := n.timeWanted()
	if at == nil {
		return 0, n.Ask(ctx, cmds...)
	}
	sent, err := n.ask(ctx, append(cmds, at.cmd)...)
	return n.heardTime(ctx, at, sent, err), err
}

// question is a question for the time.
type question struct {
	cmd     *redis.TimeCmd
	alone   bool
	detours int64
}

func (n *Node) newQuestion(alone bool) *question {
	return &question{redis.NewTimeCmd(context.Background(), "time"), alone, n.clock.detours.Load()}
}

// timeWanted returns the question for the time if one should go along with a trip that asks for a PTTL, else nil.
func (n *Node) timeWanted() *question {
	if n.clock == nil || !n.clock.wanted.Load() || !n.clock.wanted.Swap(false) {
		return nil
	}
	return n.newQuestion(false)
}

// Ends returns when a value written now for ttl will end by the server's clock, in milliseconds since 1970, or slightly earlier; zero if
// that is not known. If it has not been told the time recently, it asks.
func (n *Node) Ends(ctx context.Context, ttl time.Duration) int64 {
	if n.clock == nil {
		return 0
	}
	r := n.clock.known.Load()
	if r == nil || instant(time.Now())-r.heard > int64(relied) {
		if r = n.askTime(ctx); r == nil {
			return 0
		}
	}
	return r.earliest(instant(time.Now())) + ttl.Milliseconds()
}

// TellsTime reports whether the server may be asked for its time. It may not for a while after it did not tell it.
func (n *Node) TellsTime() bool {
	if n.clock == nil {
		return false
	}
	n.clock.mu.Lock()
	defer n.clock.mu.Unlock()
	return n.clock.silent == 0 || instant(time.Now()) >= n.clock.silent
}

// askTime asks for the time in a trip of its own, unless the server should be left alone.
func (n *Node) askTime(ctx context.Context) *reading {
	if !n.TellsTime() {
		return nil
	}
	at := n.newQuestion(true)
	sent, err := n.ask(ctx, at.cmd)
	if n.heardTime(ctx, at, sent, err) == 0 {
		return nil
	}
	return n.clock.known.Load()
}

// heardTime handles the outcome of a question for the time that was sent at an instant. It returns the time in milliseconds since 1970, or
// zero if there is none. lost says that the trip got no answer.
func (n *Node) heardTime(ctx context.Context, at *question, sent time.Time, lost error) int64 {
	if lost != nil {
		if ctx.Err() != nil || Unsent(lost) || neverSent(lost) { // says nothing about the server
			n.clock.untold(calibration)
		} else {
			n.clock.unanswered()
		}
		return 0
	}
	told, err := at.cmd.Result()
	switch {
	case err != nil && !Answered(err):
		n.clock.unanswered()
	case err != nil: // an ACL, or a proxy without the command
		n.clock.untold(silence)
	case n.ring != nil && n.clock.detours.Load() != at.detours: // the time of another shard
	default:
		n.clock.told(told.UnixMilli(), instant(sent), at.alone)
		return told.UnixMilli()
	}
	return 0
}
