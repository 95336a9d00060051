package cacheaside

import (
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Entry is a value with its outcome, age and time left.
type Entry[V any] struct {
	Value V

	// Outcome says where the value came from, in the words of Events: mayfly.OutcomeHitLocal, of this process's local tier;
	// OutcomeHitRedis, fresh from Redis; OutcomeStale, from Redis and past its TTL.
	Outcome mayfly.Outcome

	// Age is how long ago it was stored; zero if that is not known, for example because another program wrote the value.
	Age time.Duration

	// Fresh is how much longer the value is fresh, zero or negative if it is stale. TTL is how much longer Redis keeps it. Both
	// are zero if Redis was not asked for the TTL, or if the key has none because another program wrote it.
	Fresh, TTL time.Duration
}

// Loaded is what a loader of [NewEntry] returns, and one of [NewBatchEntry] for each key.
type Loaded[V any] struct {
	Value V

	// TTL is how long the value is fresh, without jitter. Zero is the namespace's TTL, with its jitter. The maximum is Namespace.MaxTTL,
	// or Namespace.TTL if that is zero: a longer TTL is cut to it, and the Observer gets a KindWarning. A TTL below mayfly.MinTTL, for
	// example of a value that has already ended, fails the load: use NoStore for such values.
	TTL time.Duration

	// NoStore returns the value to the waiting callers without storing it, and removes what is stored.
	NoStore bool

	// NotModified says that the previous value is still right. It is stored for another TTL, and Value is ignored.
	NotModified bool
}

// encode returns the bytes to store v as, under the id of its claim.
func (c *Cache[K, V]) encode(v V, id record.ID, ttl, cost time.Duration) ([]byte, error) {
	if c.ns.Plain {
		return c.bytes(nil, v)
	}
	h := record.Header{ID: id, Format: c.format, Cost: cost, Fresh: ttl, Window: c.opt.window()}
	rec := record.Begin(nil, h)
	head := len(rec)
	rec, err := c.bytes(rec, v)
	if err != nil {
		return nil, err
	}
	if n := len(rec) - head; c.opt.Compress > 0 && n >= c.opt.Compress {
		if small := s2.Encode(nil, rec[head:]); len(small) <= n-n/10 {
			h.Flags |= record.Compressed
			rec = append(record.Begin(rec[:0], h), small...)
		}
	}
	if !record.Seal(rec) {
		return nil, fmt.Errorf("the value has %d bytes, Redis takes %d", len(rec), record.MaxLen)
	}
	return rec, nil
}

// bytes and decode call the codec. A panic in it becomes an error, because much of this runs in the background, where nobody could recover.
func (c *Cache[K, V]) bytes(dst []byte, v V) (_ []byte, err error) {
	defer flight.Recover(&err)
	return c.ns.Codec.Append(dst, v)
}

func (c *Cache[K, V]) decode(src []byte) (_ V, err error) {
	defer flight.Recover(&err)
	return c.ns.Codec.Decode(src)
}

// encodeMiss returns the bytes of a remembered miss.
func (c *Cache[K, V]) encodeMiss(id record.ID, ttl, cost time.Duration) []byte {
	rec := record.Begin(nil, record.Header{ID: id, Flags: record.Negative, Cost: cost, Fresh: ttl})
	record.Seal(rec)
	return rec
}

func decompress(b []byte) ([]byte, error) {
	n, err := s2.DecodedLen(b)
	if err != nil {
		return nil, err
	}
	if n > record.MaxLen {
		return nil, fmt.Errorf("compressed bytes claim to be %d", n)
	}
	return s2.Decode(nil, b)
}

// notFound reports whether err means that the origin does not have the key, and returns err in a form that tells callers so.
func (c *Cache[K, V]) notFound(err error) (_ error, is bool) {
	switch {
	case err == nil:
		return nil, false
	case errors.Is(err, mayfly.ErrNotFound):
		return err, true
	case c.opt.NotFound == nil:
		return err, false
	}
	var panicked error
	func() {
		defer flight.Recover(&panicked) // nobody else could: loads run in the background
		is = c.opt.NotFound(err)
	}()
	switch {
	case panicked != nil:
		return fmt.Errorf("%w (Options.NotFound: %w)", err, panicked), false
	case is:
		return fmt.Errorf("%w (%w)", mayfly.ErrNotFound, err), true
	}
	return err, false
}
