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

const (
	calibration = time.Second            // the time between two
	relied      = 2 * time.Second        // for how long one is good for reads
	kept        = time.Minute            // for how long one is good for telling when what is written ends
	agreement   = 250 * time.Millisecond // how far a record may be off
	firstRetry  = 10 * time.Millisecond  // after a calibration that met no record
)

// clock is what is known of one server's clock. The zero clock knows nothing.
type clock struct {
	known  atomic.Pointer[reading]
	next   atomic.Int64 // the instant of the next calibration; zero is now
	wanted atomic.Bool  // TIME goes with the next trip that asks for a PTTL

	mu     sync.Mutex // guards what follows, and the writing of known
	vain   int        // calibrations in a row that met no record
	round  int        // how often all was forgotten
	silent int64      // until this instant the server is not asked for its time by itself, as it did not tell it; zero is past
}

// reading is one look at the clock.
type reading struct {
	sent   int64 // our instant, before the question
	millis int64 // the server's time at the answer, in milliseconds since 1970
	agrees bool  // a record was met, and agreed
	round  int
}

// at is the server's time at an instant: as late as it can be, so that nothing is thought to have more left than it has.
func (r *reading) at(now int64) int64 { return r.millis + (now-r.sent)/int64(time.Millisecond) }

// calibrates reports whether the caller's read is to ask for PTTL, so that TIME can go with it.
func (c *clock) calibrates(now int64) bool {
	next := c.next.Load()
	if next != 0 && now < next || !c.next.CompareAndSwap(next, now+int64(calibration)) {
		return false
	}
	c.wanted.Store(true)
	return true
}

// told takes the server's time, in the answer to what was sent at an instant.
func (c *clock) told(millis, sent int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &reading{sent: sent, millis: millis, round: c.round}
	if was := c.known.Load(); was != nil {
		r.agrees = was.agrees
	}
	c.silent = 0
	c.known.Store(r)
	if !r.agrees { // until a record is met: soon, and then more and more seldom
		pause := min(firstRetry<<min(c.vain, 10), calibration)
		c.vain++
		c.next.Store(instant(time.Now().Add(pause)))
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
	r.agrees = max(off, -off) <= agreement.Milliseconds()
	c.vain = 0
	c.known.Store(&r)
	c.next.Store(r.sent + int64(calibration))
}

// forget makes all that is known worthless, also for reads that are under way.
func (c *clock) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.round++
	c.known.Store(nil)
	c.next.Store(0)
}

// untold notes that the server did not tell the time, and is not to be asked again for a while.
func (c *clock) untold(pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = instant(time.Now().Add(pause))
	c.next.Store(c.silent)
}

// Clock is what was known of a server's clock before something was read there.
type Clock struct {
	of    *clock
	round int
}

// Clock returns what is known of the server's clock. ok is false where a read must ask for PTTL: nothing is known, or it is time to look after
// it, which that read then does.
func (n *Node) Clock() (c Clock, ok bool) {
	if n.clock == nil {
		return c, false
	}
	now := instant(time.Now())
	r := n.clock.known.Load()
	if n.clock.calibrates(now) || r == nil || !r.agrees || now-r.sent > int64(relied) {
		return c, false
	}
	return Clock{n.clock, r.round}, true
}

// Now returns the server's time, in milliseconds since 1970, for judging what was read after c was known. ok is false if that may be the answer of another
// server.
func (c Clock) Now() (millis int64, ok bool) {
	r := c.of.known.Load()
	if r == nil || !r.agrees || r.round != c.round {
		return 0, false
	}
	return r.at(instant(time.Now())), true
}

// Compare tells when a record says that it ends, what PTTL said that it had left, and what the server's time was, in answer to one trip.
func (n *Node) Compare(ends int64, left time.Duration, now int64) {
	if n.clock != nil && ends != 0 && left > 0 && now != 0 {
		n.clock.compared(ends - left.Milliseconds() - now)
	}
}

// AskTimed is Ask, and asks for the server's time too if it is time to. It returns that in milliseconds since 1970, zero if it was not told.
func (n *Node) AskTimed(ctx context.Context, cmds ...redis.Cmder) (now int64, err error) {
	at := n.timeWanted()
	if at == nil {
		return 0, n.Ask(ctx, cmds...)
	}
	sent := instant(time.Now())
	if err = n.Ask(ctx, append(cmds, at)...); err == nil {
		now = n.heardTime(at, sent)
	}
	return now, err
}

// timeWanted returns the question for the time, if it is to go along with a trip that asks for a PTTL.
func (n *Node) timeWanted() *redis.TimeCmd {
	if n.clock == nil || !n.clock.wanted.Load() || !n.clock.wanted.Swap(false) {
		return nil
	}
	return redis.NewTimeCmd(context.Background(), "time")
}

// Ends returns when what is written now for ttl will end by the server's clock, in milliseconds since 1970, and zero if that cannot be
// known. It asks for the time if it has not been told of late.
func (n *Node) Ends(ctx context.Context, ttl time.Duration) int64 {
	if n.clock == nil {
		return 0
	}
	now := instant(time.Now())
	r := n.clock.known.Load()
	if r == nil || now-r.sent > int64(kept) {
		if r = n.askTime(ctx, now); r == nil {
			return 0
		}
	}
	return r.at(instant(time.Now())) + ttl.Milliseconds()
}

func (n *Node) askTime(ctx context.Context, now int64) *reading {
	n.clock.mu.Lock()
	silent := n.clock.silent
	n.clock.mu.Unlock()
	if silent != 0 && now < silent {
		return nil
	}
	cmd := redis.NewTimeCmd(ctx, "time")
	if n.Ask1(ctx, cmd) != nil {
		n.clock.untold(calibration)
		return nil
	}
	if n.heardTime(cmd, now) == 0 {
		return nil
	}
	return n.clock.known.Load()
}

// heardTime takes the answer to TIME, which was sent at an instant, and returns it in milliseconds since 1970; zero if there is none.
func (n *Node) heardTime(cmd *redis.TimeCmd, sent int64) int64 {
	at, err := cmd.Result()
	switch {
	case err == nil:
		n.clock.told(at.UnixMilli(), sent)
		return at.UnixMilli()
	case Answered(err): // an ACL, or a proxy that lacks the command
		n.clock.untold(kept)
	}
	return 0
}
