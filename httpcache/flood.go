package httpcache

import (
	"context"
	"errors"

	"github.com/mayflycache/mayfly"
)

var (
	errVariants = errors.New("there are more variants than are kept: the one stored first leaves")
	errFlood    = errors.New("so many new variants are asked for that none is stored for a while")
)

// A URL of which clients ask for ever new variants would be written to Redis for each of them, and those that are of use
// would leave. So when more than four times MaxVariants of one left within SharedPass, and at least 256, new ones are not stored
// until that is over: they are answered by the handler, and what is stored stays.
func (o *Options) flood() int { return max(4*o.MaxVariants, 256) }

// tellLeft tells that n variants of a resource left, and whether that was too many just now.
func (c *Cache) tellLeft(ctx context.Context, key string, n int) {
	e := mayfly.Event{Kind: mayfly.KindFill, Outcome: mayfly.OutcomeDropped, Key: key, N: n, Err: errVariants}
	c.tell(ctx, e)
	if left, most := c.left.CountIn(key, n, c.opt.SharedPass), c.opt.flood(); left > most && left-n <= most {
		e.Err = errFlood
		c.tell(ctx, e)
	}
}
