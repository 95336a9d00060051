package engine

import (
	"strings"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// Blocking commands do the same as their plain forms, and park when there is nothing to take. In a transaction or a script they do not wait:
// they reply at once that they found nothing.

// blockingPop is BLPOP or BRPOP: it replies with the key and the element.
func (c *call) blockingPop(where end) {
	waitFor(c, func(key []byte, l *values.ListValue) {
		c.rewrite(popped[where], key)
		c.out.Array(2)
		c.out.Bulk(key)
		c.out.Bulk(pop(l, where))
		c.lost(key, l, 1, popped[where])
	})
}

// waitFor calls take with the first of the keys that holds a value, or parks. The timeout is the last argument, behind the keys.
func waitFor[T values.Value](c *call, take func(key []byte, v T)) {
	last := len(c.args) - 1
	keys := c.args[1:last]
	deadline := c.waitUntil(last)
	key, v, found := firstOf[T](c, keys)
	switch {
	case c.failed:
	case found:
		take(key, v)
	default:
		c.park(keys, emptyAs[T]().Kind(), deadline)
	}
}

func blmoveCommand(c *call) {
	from, to := c.ends(3)
	c.blockingMove(from, to, 5)
}

// blockingMove is LMOVE with a timeout at argument i.
func (c *call) blockingMove(from, to end, i int) {
	deadline := c.waitUntil(i)
	switch {
	case c.move(from, to):
		c.rewrite(strings.TrimPrefix(c.cmd.Name, "b"), c.args[1:i])
	case c.failed:
	case c.s.noBlock:
		c.out.Null()
	default:
		c.park(c.args[1:2], values.List, deadline)
	}
}
