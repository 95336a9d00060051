package nodes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A record says when it ends by its server's clock. Who knows that clock need not ask for PTTL at each read, but only before something is done
// because of the answer. So one read a second asks for PTTL and TIME too: that tells the server's time, and whether records agree with
// it, that is whether what they say is what PTTL says. They do not where another program changed a TTL, or where TIME and the TTLs
// have different clocks, as miniredis's have. Nothing is reckoned before both are known, nor while they disagree, nor from what is older than [relied].
//
// The time is known from when it was asked for to when the answer was there. What is read is judged by the latest that it can be, and what is
// written ends by the earliest: a record that says too early that it ends costs a question, and one that says it too late is not renewed.

const (
	calibration = time.Second           // the time between two
	relied      = 2 * time.Second       // for how long one is good
	tooEarly    = 2 * time.Second       // how far a record may be off: it may have waited for its turn after its end was reckoned
	tooLate     = 5 * time.Millisecond  // the same for one that ends before it says so
	firstRetry  = 10 * time.Millisecond // after a calibration that met no record
	silence     = time.Minute           // for how long a server that does not tell its time is left alone
	wary        = 10                    // how many looks in a row must meet records that agree, after one that met a record which ends before it says so
)

// clock is what is known of one server's clock. The zero clock knows nothing.
type clock struct {
	known   atomic.Pointer[reading]
	next    atomic.Int64 // the instant of the next calibration; zero is now
	wanted  atomic.Bool  // TIME goes with the next trip that asks for a PTTL
	detours atomic.Int64 // how many answers came from another server

	mu     sync.Mutex // guards what follows, and the writing of known
	vain   int        // calibrations in a row that met no record
	wary   int        // how many looks must still agree before records are believed again
	silent int64      // until this instant the server is not asked for its time by itself, as it did not tell it; zero is past
	lost   int        // questions for the time in a row that had no answer, nor had what went along
	proven bool       // since then the time was asked for by itself, and told
}

// reading is one look at the clock.
type reading struct {
	sent   int64 // our instant, before the question
	heard  int64 // the same, after the answer
	millis int64 // the server's time at the answer, in milliseconds since 1970
	met    bool  // it has met a record
	agrees bool  // it has met one that agrees, and none of the looks before it one that is late; before it meets any, as the one before it
}

// latest is the latest that the server's time can be at an instant, and earliest the earliest, for as long as nobody moves the clock.
func (r *reading) latest(now int64) int64   { return r.millis + (now-r.sent)/int64(time.Millisecond) }
func (r *reading) earliest(now int64) int64 { return r.millis + (now-r.heard)/int64(time.Millisecond) }

// calibrates reports whether it is for the caller to see to it that the time is asked for.
func (c *clock) calibrates(now int64) bool {
	next := c.next.Load()
	return (next == 0 || now >= next) && c.next.CompareAndSwap(next, now+int64(calibration))
}

// goesAlong reports whether TIME may go with other questions: not after such a trip was lost, until it was told by itself.
func (c *clock) goesAlong() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost == 0 || c.proven
}

// told takes the server's time, in the answer to what was sent at an instant, by itself or with other questions.
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
	if !r.agrees || alone && c.lost > 0 { // until a record is met: soon, and then more and more seldom
		c.next.Store(now + int64(min(firstRetry<<min(c.vain, 10), calibration)))
		c.vain++
	}
}

// compared takes by how many milliseconds a record differs from what PTTL and TIME said together.
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

// untold notes that the server did not tell the time, and is not to be asked again for a while.
func (c *clock) untold(pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(pause)
}

// leave is untold of one who holds mu.
func (c *clock) leave(pause time.Duration) {
	c.silent = instant(time.Now().Add(pause))
	c.next.Store(c.silent)
}

// unanswered notes that a trip with TIME had no answer. It may be TIME's fault: there are proxies that close the connection, or say nothing. So it
// is asked by itself next, where no reader waits for it; after two such trips it is left alone for a while.
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

// Clock is what was known of a server's clock before something was read there.
type Clock struct {
	of      *clock
	detours int64
}

// Clock returns what is known of the server's clock. ok is false where a read must ask for PTTL: nothing is known, or it is time to look after
// it, which that read then does.
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

// Now returns the server's time, in milliseconds since 1970 and as late as it can be, for judging what was read after c was known. ok is false if that
// may be the answer of another server, or another clock.
func (c Clock) Now() (millis int64, ok bool) {
	r := c.of.known.Load()
	if r == nil || !r.agrees || c.of.detours.Load() != c.detours {
		return 0, false
	}
	return r.latest(instant(time.Now())), true
}

// Compare tells when a record says that it ends, what PTTL said that it had left, and what the server's time was, in answer to one trip that was made after
// c was known.
func (c Clock) Compare(ends int64, left time.Duration, now int64) {
	if c.of != nil && ends != 0 && left > 0 && now != 0 && c.of.detours.Load() == c.detours {
		c.of.compared(ends - left.Milliseconds() - now)
	}
}

// AskTimed is Ask, and asks for the server's time too if it is time to. It returns that in milliseconds since 1970, zero if it was not told.
func (n *Node) AskTimed(ctx context.Context, cmds ...redis.Cmder) (now int64, err error) {
	at := n.timeWanted()
	if at == nil {
		return 0, n.Ask(ctx, cmds...)
	}
	sent, err := n.ask(ctx, append(cmds, at.cmd)...)
	return n.heardTime(ctx, at, sent, err), err
}

// question is one for the time.
type question struct {
	cmd     *redis.TimeCmd
	alone   bool
	detours int64
}

func (n *Node) newQuestion(alone bool) *question {
	return &question{redis.NewTimeCmd(context.Background(), "time"), alone, n.clock.detours.Load()}
}

// timeWanted returns the question for the time, if it is to go along with a trip that asks for a PTTL.
func (n *Node) timeWanted() *question {
	if n.clock == nil || !n.clock.wanted.Load() || !n.clock.wanted.Swap(false) {
		return nil
	}
	return n.newQuestion(false)
}

// Ends returns when what is written now for ttl will end by the server's clock, in milliseconds since 1970, or a little earlier, and zero if that cannot be
// known. It asks for the time if it has not been told of late.
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

// TellsTime reports whether the server may be asked for its time: not while it is left alone because it did not tell it.
func (n *Node) TellsTime() bool {
	if n.clock == nil {
		return false
	}
	n.clock.mu.Lock()
	defer n.clock.mu.Unlock()
	return n.clock.silent == 0 || instant(time.Now()) >= n.clock.silent
}

// askTime asks for the time by itself, unless the server is to be left alone.
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

// heardTime takes what became of the question for the time, which was sent at an instant, and returns the answer in milliseconds since 1970; zero if
// there is none. lost says that the trip had no answer.
func (n *Node) heardTime(ctx context.Context, at *question, sent time.Time, lost error) int64 {
	if lost != nil {
		if ctx.Err() != nil || Unsent(lost) || neverSent(lost) { // says nothing of the server
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
	case err != nil: // an ACL, or a proxy that lacks the command
		n.clock.untold(silence)
	case n.ring != nil && n.clock.detours.Load() != at.detours: // another shard's
	default:
		n.clock.told(told.UnixMilli(), instant(sent), at.alone)
		return told.UnixMilli()
	}
	return 0
}
