package nodes

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// While a server does not answer, it is asked again each [Open] in the background, so that no caller pays for the question. That goes on
// for as long as somebody wants to know. Where no owner ends what runs in the background nothing is asked there: a caller is the probe.
//
// When nobody has called for a while the breaker rests in both cases: it refuses nobody, which is told, and the next failure opens it again. Else
// what was told of it would stay so until the next call, hours after the server was back.

const (
	unasked = 5 * time.Minute  // since the latest call: then nobody probes any more
	unowned = 30 * time.Second // the same, where callers are the probes
)

// tend sees to it that a server whose breaker is open is probed, unless somebody does already.
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

// watch sees to it that an open breaker without an owner rests when nobody calls. It needs a timer, and no goroutine that would have to be
// ended.
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

// probe asks until the server answers, nobody wants to know, or the owner is closed.
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

// probeOnce reports whether the server is to be asked again. It asks as long as a call would, so that it soon asks again; what takes
// longer goes on beside it.
func (n *Node) probeOnce() (again bool) {
	b := &n.breaker
	switch {
	case b.until.Load() == 0: // somebody who asked before it opened was answered
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

// rest refuses nobody any more, if the breaker is open: nobody asks, or nobody probes.
func (n *Node) rest() {
	if n.breaker.Rest() && n.told != nil {
		n.told(n.name, false)
	}
	n.untended()
}

// untended is the end of the probing, or its beginning if the server failed again meanwhile, and found that somebody probes.
func (n *Node) untended() {
	n.watched.Store(false)
	if n.breaker.tended.Store(false); n.breaker.until.Load() != 0 {
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
