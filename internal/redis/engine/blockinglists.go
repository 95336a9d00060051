package engine

import (
	"strings"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// Blocking commands do what their other form does, and park when there is nothing to take. In a transaction or a script they reply at once
// that there was nothing.

func blpopCommand(c *call) { c.blockingPop(left) }
func brpopCommand(c *call) { c.blockingPop(right) }

func (c *call) blockingPop(where end) {
	last := len(c.args) - 1
	deadline, ok := c.waitUntil(last)
	if !ok {
		return
	}
	keys := c.args[1:last]
	for _, key := range keys {
		l, ok := c.writeList(key)
		if !ok {
			return
		}
		if l == nil {
			continue
		}
		if c.recording() {
			c.rewrite(upper(popped[where]), key)
		}
		c.out.Array(2)
		c.out.Bulk(key)
		c.out.Bulk(pop(l, where))
		c.tookFrom(key, l, where, 1)
		return
	}
	c.park(keys, values.List, deadline)
}

func blmoveCommand(c *call) {
	if from, to, ok := c.ends(3); ok {
		c.blockingMove(from, to, 5)
	}
}

func brpoplpushCommand(c *call) { c.blockingMove(right, left, 3) }

// blockingMove is LMOVE with a timeout at argument i.
func (c *call) blockingMove(from, to end, i int) {
	deadline, ok := c.waitUntil(i)
	switch {
	case !ok:
	case c.move(from, to):
		if c.recording() {
			c.rewrite(append([][]byte{upper(strings.TrimPrefix(c.cmd.Name, "b"))}, c.args[1:i]...)...)
		}
	case c.s.noBlock:
		c.out.Null()
	default:
		c.park(c.args[1:2], values.List, deadline)
	}
}

func blmpopCommand(c *call) {
	o, ok := c.multiPop(2)
	if !ok {
		return
	}
	if deadline, ok := c.waitUntil(1); ok && !c.popFirst(o) {
		c.park(o.keys, values.List, deadline)
	}
}

func upper(name string) []byte { return []byte(strings.ToUpper(name)) }
