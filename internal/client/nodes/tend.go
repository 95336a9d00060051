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

// probe asks until the server answers, nobody wants to know, or the owner is closed.
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
			n.ping()
		}
		next.Reset(Open)
	}
	if n.breaker.tended.Store(false); n.breaker.until.Load() != 0 { // it failed again meanwhile, and found this one
		n.tend()
	}
}

// ping asks for nothing but an answer.
func (n *Node) ping() {
	t, err := n.turn(context.Background(), nil, time.Now())
	if err != nil {
		return
	}
	defer t.leave()
	cmd := redis.NewStatusCmd(t.limited, "ping")
	n.client.Process(t.limited, cmd)
	t.end(n.settle(t.limited, cmd))
}
