package nodes

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// While a server does not answer, it is asked again each [Open] in the background, so that no caller pays for the question. That goes on
// for as long as somebody wants to know: who comes a minute after all others is the probe itself, as is everybody where no owner ends what
// runs in the background.

// unasked is how long after the latest call a server is no longer probed in the background.
const unasked = time.Minute

// tend sees to it that a server whose breaker is open is probed, unless somebody does already.
func (n *Node) tend() {
	if n.closing == nil || !n.breaker.tended.CompareAndSwap(false, true) {
		return
	}
	n.breaker.refused.Store(instant(time.Now()))
	if !n.start(n.probe) {
		n.breaker.tended.Store(false)
	}
}

// probe asks until the server answers, nobody wants to know, or the owner is closed. It asks as long as a call would, so that it soon asks again; what
// takes longer goes on beside it.
func (n *Node) probe() {
	next := time.NewTimer(Open)
	defer next.Stop()
	for open := true; open; open = n.breaker.until.Load() != 0 {
		select {
		case <-n.closing:
			n.breaker.tended.Store(false)
			return
		case <-next.C:
		}
		if instant(time.Now())-n.breaker.refused.Load() > int64(unasked) {
			n.breaker.tended.Store(false)
			return
		}
		if n.breaker.until.Load() != 0 {
			if n.ping(n.budget); n.breaker.until.Load() != 0 {
				n.reach()
			}
		}
		next.Reset(Open)
	}
	if n.breaker.tended.Store(false); n.breaker.until.Load() != 0 { // it failed again meanwhile, and found this one
		n.tend()
	}
}

// far is by how much longer than a call a question may take for which nobody waits. To make a connection takes about four trips: a server
// that is so far away that they are more than a call may take would else never be found to answer, since each caller leaves a connection
// half made, and that one is thrown away.
const far = 8

// ping asks for nothing but an answer, within a time, or until the owner is closed.
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
	t.end(n.settle(ctx, cmd))
}

// warm makes a connection in the background, one at a time, after a call that had no time to. Where one is idle none is needed, and
// to ask by it would only keep it from a caller.
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
