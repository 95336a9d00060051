package cacheaside

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Warm loads and stores what is not stored yet of keys, a hundred at a time, and tells progress, which may be nil, after
// each hundred how many keys it has asked for so far and how many of them failed. It ends early only with ctx or with the cache; keys that fail are counted, and the last one's error is
// returned.
func (c *Cache[K, V]) Warm(ctx context.Context, keys iter.Seq[K], progress func(keys, failed int)) error {
	if keys == nil {
		return errors.New("cacheaside: warm: keys is nil: give it those to be loaded")
	}
	const step = 100
	sum, failures := 0, 0
	var last error
	some := make([]K, 0, step)
	warm := func() bool {
		_, err := c.GetMany(ctx, some)
		sum += len(some)
		var failed *ManyError[K]
		if errors.As(err, &failed) {
			failures += len(failed.Errs)
			last = err
		}
		some = some[:0]
		if progress != nil {
			progress(sum, failures)
		}
		return ctx.Err() == nil && c.works.Err() == nil
	}
	for key := range keys {
		if some = append(some, key); len(some) == step && !warm() {
			break
		}
	}
	if len(some) > 0 {
		warm()
	}
	if err := ctx.Err(); err != nil {
		last = err
	}
	if last != nil {
		return fmt.Errorf("cacheaside: warm: %d of %d keys failed: %w", failures, sum, last)
	}
	return nil
}
