package cacheaside

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Progress tells how far a Warm has come.
type Progress struct {
	Keys   int // asked for so far
	Failed int // of these
}

// Warm loads and stores what is not stored yet of keys, a hundred at a time, and tells progress, which may be nil, after
// each hundred. It ends early only with ctx or with the cache; keys that fail are counted, and the last one's error is
// returned.
func (c *Cache[K, V]) Warm(ctx context.Context, keys iter.Seq[K], progress func(Progress)) error {
	if keys == nil {
		return errors.New("cacheaside: warm: keys is nil: give it those to be loaded")
	}
	const step = 100
	var sum Progress
	var last error
	some := make([]K, 0, step)
	warm := func() bool {
		_, err := c.GetMany(ctx, some)
		sum.Keys += len(some)
		var failed *ManyError[K]
		if errors.As(err, &failed) {
			sum.Failed += len(failed.Errs)
			last = err
		}
		some = some[:0]
		if progress != nil {
			progress(sum)
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
		return fmt.Errorf("cacheaside: warm: %d of %d keys failed: %w", sum.Failed, sum.Keys, last)
	}
	return nil
}
