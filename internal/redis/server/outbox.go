package server

import (
	"sync"
	"time"
)

// outbox is the output that a connection still has to write, in order. Chunks are posted while the server's lock is held, which gives them
// the engine's order, and written after it is released.
//
// Writing does not wait for the peer: flush writes what the connection takes at once. If something is left, a goroutine writes it and
// whatever is posted meanwhile, and then ends.
type outbox struct {
	try func([]byte) (int, error) // writes what can be written without waiting; nil if nc cannot do that

	mu       sync.Mutex
	queue    [][]byte
	size     int        // bytes in queue
	needs    int64      // the keeper's position that must be safe before the queue may be sent
	over     time.Time  // since when size exceeds the soft limit; zero: it does not
	draining bool       // a goroutine is writing, and only it may write
	doomed   bool       // cut the connection after the next flush
	done     *sync.Cond // signals that draining became false
	ended    bool
	free     []byte // a written chunk, for reuse
}

// post moves the session's output to the queue; server.mu is held. A subscriber or replica that is too far behind is marked to be cut.
func (c *conn) post() {
	out := &c.session.Out
	if f := c.server.faults.Load(); f != nil {
		f.filter(out)
	}
	n := out.Len()
	if n == 0 && !c.session.Closing() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = out.Take(c.queue)
	c.size += n
	if k := c.server.options.Keeper; k != nil {
		c.needs = k.Position()
	}
	c.doomed = c.doomed || c.session.Closing() || c.session.Subscribed() && c.exceeds(c.server.options.Subscribers) ||
		c.session.IsReplica() && c.exceeds(c.server.options.Replicas)
}

// exceeds reports whether the queue is above the hard limit, or has been above the soft limit for too long.
func (c *conn) exceeds(limit Limit) bool {
	switch {
	case c.size > limit.Hard:
		return true
	case c.size <= limit.Soft:
		c.over = time.Time{}
	case c.over.IsZero():
		c.over = time.Now()
	default:
		return time.Since(c.over) > limit.For
	}
	return false
}

// flush writes as much of the queue as it can without waiting, and leaves the rest to a goroutine.
func (c *conn) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaitKeeper()
	if c.try != nil && !c.draining {
		c.writeSome()
	}
	switch {
	case c.doomed:
		c.cut()
	case len(c.queue) > 0 && !c.draining && !c.ended:
		c.draining = true
		c.server.work.Add(1) // work cannot be zero here: the connection's own goroutine still counts
		go c.drain()
	}
}

// awaitKeeper returns once nothing in the queue reports a write that may still be lost; c.mu is held, but released while waiting.
func (c *conn) awaitKeeper() {
	k := c.server.options.Keeper
	for k != nil && !k.Safe(c.needs) {
		needs := c.needs
		c.mu.Unlock()
		k.Await(needs) // an error needs no handling: the writer's connection was cut, and others may see the write
		c.mu.Lock()
	}
}

// writeSome writes as much of the queue as the connection accepts without waiting; c.mu is held.
func (c *conn) writeSome() {
	for i, b := range c.queue {
		n, err := c.try(b)
		c.size -= n
		c.doomed = c.doomed || err != nil
		if n < len(b) {
			c.queue[i] = b[n:]
			c.queue = c.queue[i:]
			return
		}
		c.free, c.queue[i] = b, nil
	}
	c.queue = c.queue[:0]
}

// drain writes the queue until it is empty.
func (c *conn) drain() {
	defer c.server.work.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 {
		c.awaitKeeper()
		chunks := c.queue
		c.queue = nil
		for i, b := range chunks {
			c.mu.Unlock()
			_, err := c.nc.Write(b)
			c.mu.Lock()
			if err != nil {
				c.cut()
				break
			}
			c.free, chunks[i] = b, nil
			c.size -= len(b)
			c.done.Broadcast()
		}
	}
	c.draining = false
	c.done.Broadcast()
}

// syncAhead is how many bytes of a snapshot may wait to be written.
const syncAhead = 4 << 20

// awaitRoom waits until the peer has taken most of what was written to it. It reports false if the connection was cut.
func (c *conn) awaitRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.draining && c.size > syncAhead {
		c.done.Wait()
	}
	return !c.isCut()
}

// finish waits until everything is written or the connection is cut. Nothing is written after it.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.draining {
		c.done.Wait()
	}
	c.ended = true
}

// spare returns a written chunk for reuse, or nil.
func (c *conn) spare() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.free
	c.free = nil
	return b
}
