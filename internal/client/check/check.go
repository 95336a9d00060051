// Package check collects what is wrong with the options of a constructor and returns it as one error that names every field:
//
//	c := check.In("Options.")
//	c.TTL("Hold", o.Hold)
//	c.Refuse(o.Queue < 0, "Queue must not be negative, got %d", o.Queue)
//	return c.Err()
package check

import (
	"errors"
	"fmt"
	"reflect"
	"time"
)

// List is the list of errors so far.
type List struct {
	place string
	wrong []error
}

// In returns an empty list. Each of its errors begins with place, such as "Options.".
func In(place string) *List { return &List{place: place} }

// Refuse adds an error if bad.
func (l *List) Refuse(bad bool, format string, args ...any) {
	if bad {
		l.wrong = append(l.wrong, fmt.Errorf("%s%w", l.place, fmt.Errorf(format, args...)))
	}
}

// TTL adds an error for a ttl that [TTL] refuses. Zero is fine: it stands for a default.
func (l *List) TTL(field string, ttl time.Duration) {
	if ttl != 0 {
		l.Add(TTL(l.place+field, ttl))
	}
}

// Wrap adds err with the place in front. Nil adds nothing.
func (l *List) Wrap(err error) { l.Refuse(err != nil, "%w", err) }

// Add adds err as it is. Nil adds nothing.
func (l *List) Add(err error) { l.wrong = append(l.wrong, err) }

// Err returns all errors as one, or nil if there are none.
func (l *List) Err() error { return errors.Join(l.wrong...) }

const (
	// MinTTL is the shortest valid TTL: Redis counts in milliseconds.
	MinTTL = time.Millisecond

	// MaxTTL is the longest valid TTL. Redis and time.Duration would overflow at about 292 years; a TTL over a
	// century, with room left for jitter and a stale window, is a unit that was multiplied twice.
	MaxTTL = 100 * 365 * 24 * time.Hour
)

// TTL returns an error that names the field and the value if ttl is zero, negative, below [MinTTL] or above [MaxTTL].
func TTL(field string, ttl time.Duration) error {
	switch {
	case 0 < ttl && ttl < MinTTL:
		return fmt.Errorf("%s must be at least 1ms, got %v: a bare number counts nanoseconds, write 10*time.Second", field, ttl)
	case ttl < MinTTL:
		return fmt.Errorf("%s must be at least 1ms, got %v", field, ttl)
	case ttl > MaxTTL:
		return fmt.Errorf("%s must be at most %v (100 years), got %v", field, MaxTTL, ttl)
	}
	return nil
}

// Client returns an error if rdb is nil or was not made by its constructor. A client such as &redis.Client{} panics when used.
func Client(field string, rdb any) error {
	if IsNil(rdb) {
		return fmt.Errorf("%s is nil: give it a client, such as redis.NewClient", field)
	}
	if p := reflect.ValueOf(rdb); p.Kind() == reflect.Pointer && p.Elem().IsZero() {
		return fmt.Errorf("%s is an empty %T, which cannot connect: make it with its constructor, such as redis.NewClient", field, rdb)
	}
	return nil
}

// IsNil reports whether v is nil or an interface that holds a nil pointer, such as a var c *redis.Client passed before it was set.
func IsNil(v any) bool {
	p := reflect.ValueOf(v)
	return !p.IsValid() || p.Kind() == reflect.Pointer && p.IsNil()
}
