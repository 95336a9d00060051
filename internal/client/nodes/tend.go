package nodes

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server that does not answer is asked again every [Open], in the background, so that no caller pays for the question. That goes on while
// there are callers. If no owner would end the background work, nothing is asked there, and a caller is the probe.
//
// When nobody has called for a while the breaker rests, in both cases: it refuses nobody, says so, and opens again at the next failure.
// Otherwise what it last said would stand until the next call, hours after the server was back.

const (
	unasked = 5 * time.Minute  // how long after the latest call background probing ends
	unowned = 30 * time.Second // the same if callers are the probes
)

// tend makes sure that a server with an open breaker is probed, by one goroutine.
func (n *Node) tend() {
	if n.closing == nil {
		n.watch()
		return
	}
	if !n.breaker.tended.CompareAndSwap(false, true) {
		return
	}
	n.breaker.refused.Store(instant(time.Now()))
	if !n.start(n.probe) {
		n.rest()
	}
}

// watch makes an open breaker without an owner rest when calls end. It needs a timer, and no goroutine that somebody would have to end.
func (n *Node) watch() {
	if n.watched.CompareAndSwap(false, true) {
		n.breaker.refused.Store(instant(time.Now()))
		n.watchFor(unowned)
	}
}

func (n *Node) watchFor(d time.Duration) {
	time.AfterFunc(d, func() {
		left := unowned - time.Duration(instant(time.Now())-n.breaker.refused.Load())
		if left > 0 && n.breaker.until.Load() != 0 {
			n.watchFor(left)
			return
		}
		n.rest()
	})
}

// probe asks until the server answers, callers stay away, or the owner is closed.
func (n *Node) probe() {
	next := time.NewTimer(Open)
	defer next.Stop()
	for {
		select {
		case <-n.closing:
			n.rest()
			return
		case <-next.C:
		}
		if !n.probeOnce() {
			return
		}
		next.Reset(Open)
	}
}

// probeOnce reports whether the server should be asked again. The question takes no longer than a call would, so that the next can follow
// soon. A slower question runs beside it.
func (n *Node) probeOnce() (again bool) {
	b := &n.breaker
	switch {
	case b.until.Load() == 0: // a caller that asked before it opened got an answer
	case instant(time.Now())-b.refused.Load() > int64(unasked):
		n.rest()
		return false
	default:
		if n.ping(n.budget); b.until.Load() != 0 {
			n.reach()
			return true
		}
	}
	n.untended()
	return false
}

// rest closes an open breaker because nobody asks, or nobody probes.
func (n *Node) rest() {
	if n.breaker.Rest() && n.told != nil {
		n.told(n.name, false)
	}
	n.untended()
}

// untended ends the probing, or begins it anew if the server failed again meanwhile and found this goroutine still tending.
func (n *Node) untended() {
	n.watched.Store(false)
	if n.breaker.tended.Store(false); n.breaker.until.Load() != 0 {
		n.tend()
	}
}

// far is how many times longer than a call a background question may take. Making a connection takes about four round trips. If a server is
// so far away that a call has no time for these, every call would leave behind a half-made connection, which is thrown away, and the server
// would never be found to answer.
const far = 8

// ping asks for nothing but an answer. It ends after a time, or when the owner is closed.
func (n *Node) ping(within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	go func() {
		select {
		case <-n.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	t, err := n.turn(ctx, nil, time.Now())
	if err != nil {
		return
	}
	defer t.leave()
	cmd := redis.NewStatusCmd(ctx, "ping")
	n.client.Process(ctx, once{cmd})
	if err := n.settle(ctx, cmd); err == nil || n.breaker.until.Load() != 0 { // what was asked before the breaker went to rest does not open it again
		t.end(err)
	}
}

// warm makes a connection in the background, one at a time, after a call that had no time to make it. If a connection is idle, none is
// needed, and pinging on it would only keep it from a caller.
func (n *Node) warm() {
	if n.closing == nil || n.pool == nil || n.pool.PoolStats().IdleConns > 0 {
		return
	}
	n.reach()
}

// reach asks a server that may be far away, in the background, one question at a time.
func (n *Node) reach() {
	if !n.warming.CompareAndSwap(false, true) {
		return
	}
	if !n.start(func() { n.ping(far * n.budget); n.warming.Store(false) }) {
		n.warming.Store(false)
	}
}
