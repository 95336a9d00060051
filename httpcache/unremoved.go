package httpcache

import (
	"context"
	"errors"
)

// Resources that a request has changed and that could not be removed are in doubt: Redis may still hold what must not be served.

// errDoubted says that what Redis holds of a key must not be served.
var errDoubted = errors.New("a removal has not been done yet")

// doubt remembers keys, and sees to it that they are removed when Redis is back.
func (c *Cache) doubt(ctx context.Context, why error, keys []string) {
	c.unremoved.Add(ctx, why, keys...)
	c.local.Forget(keys...) // what was read between the attempt and now
}

// purgeAgain removes keys in doubt, all or none.
func (c *Cache) purgeAgain(ctx context.Context, keys []string) (done []string, err error) {
	if err := c.purgeKeys(ctx, keys); err != nil {
		return nil, err
	}
	return keys, nil
}
