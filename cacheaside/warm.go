package cacheaside

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Warm loads and stores those of keys that are not stored yet, a hundred at a time. After each hundred it calls progress, which may be
// nil, with the number of keys so far and how many of them failed. It ends early only when ctx ends or the cache is closed. If keys
// failed, it returns the last error.
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
