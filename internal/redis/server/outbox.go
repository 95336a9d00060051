package server

import (
	"sync"
	"time"
)

// outbox is what a connection has still to write, in order. Chunks are posted while the server's lock is held, so that their order is the
// engine's, and written after it was given back.
//
// Writing does not wait for the peer: flush hands over what the connection takes at once. If something is left, a goroutine writes it, and
// whatever is posted meanwhile, and ends.
type outbox struct {
	try func([]byte) (int, error) // writes what can be written without waiting; nil if nc has no such way

	mu       sync.Mutex
	queue    [][]byte
	size     int        // bytes in queue
	needs    int64      // the keeper's position that must be safe before any of it goes out
	over     time.Time  // since when size exceeds the soft limit; zero: it does not
	draining bool       // a goroutine writes; only it may
	doomed   bool       // cut the connection when the queue was flushed once
	done     *sync.Cond // draining became false
	ended    bool
	free     []byte // a chunk that was written and may be used again
}

// post moves the session's output to the queue; server.mu is held. A subscriber that has not read for too long is marked to be cut.
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

// exceeds reports whether too much is queued, or more than a little for too long.
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

// flush writes what is queued without waiting, and leaves the rest to a goroutine.
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
		c.server.work.Add(1) // the connection's own goroutine still counts, so the server is not waiting for none
		go c.drain()
	}
}

// awaitKeeper returns once what is queued tells of nothing that may still be lost; c.mu is held, but while it waits.
func (c *conn) awaitKeeper() {
	k := c.server.options.Keeper
	for k != nil && !k.Safe(c.needs) {
		needs := c.needs
		c.mu.Unlock()
		k.Await(needs) // an error: who wrote was cut, and others may know
		c.mu.Lock()
	}
}

// writeSome writes as much of the queue as the connection takes without waiting; c.mu is held.
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

// finish waits until everything is written, or the connection cut. Nothing is written after it.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.draining {
		c.done.Wait()
	}
	c.ended = true
}

// spare returns a chunk that was written and may be used again, or nil.
func (c *conn) spare() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.free
	c.free = nil
	return b
}
