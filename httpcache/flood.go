package httpcache

import (
	"context"
	"errors"

	"github.com/mayflycache/mayfly"
)

var (
	errVariants = errors.New("the URL has more variants than MaxVariants: the one stored first was dropped")
	errFlood    = errors.New("the URL has so many new variants that none is stored for a while")
)

// When clients keep requesting new variants of a URL, each would be written to Redis and push out one that is of use. So when more than four
// times MaxVariants of a URL's variants, and at least 256, were dropped within SharedPass, new ones are not stored until SharedPass is over. The
// handler answers them, and the stored variants stay.
func (o *Options) flood() int { return max(4*o.MaxVariants, 256) }

// tellLeft reports that n variants of a resource were dropped, and whether that has just become a flood.
func (c *Cache) tellLeft(ctx context.Context, key string, n int) {
	e := mayfly.Event{Kind: mayfly.KindFill, Outcome: mayfly.OutcomeDropped, Key: key, N: n, Err: errVariants}
	c.tell(ctx, e)
	if left, most := c.left.CountIn(key, n, c.opt.SharedPass), c.opt.flood(); left > most && left-n <= most {
		e.Err = errFlood
		c.tell(ctx, e)
	}
}
