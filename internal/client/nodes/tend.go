package nodes

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server that does not answer is asked again every [Open], in the background, so that no caller pays for the question. That goes on while
// there are callers: the first caller after a minute without any is the probe itself. So is any caller if no owner would end the background
// work.

// unasked is how long after the latest call background probing ends.
const unasked = time.Minute

// tend makes sure that a server with an open breaker is probed, by one goroutine.
func (n *Node) tend() {
	if n.closing == nil || !n.breaker.tended.CompareAndSwap(false, true) {
		return
	}
	n.breaker.refused.Store(instant(time.Now()))
	if !n.start(n.probe) {
		n.breaker.tended.Store(false)
	}
}

// probe asks until the server answers, callers stay away, or the owner is closed. Each question takes no longer than a call would, so that
// the next can follow soon. A slower question runs beside it.
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
	if n.breaker.tended.Store(false); n.breaker.until.Load() != 0 { // it failed again meanwhile, and found this goroutine still tending
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
	t.end(n.settle(ctx, cmd))
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
