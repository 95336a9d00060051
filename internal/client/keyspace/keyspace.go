// Package keyspace is a namespace as a pattern uses it: checked, with a codec, the full names of its keys, and errors that
// name the pattern and the key.
package keyspace

import (
	"fmt"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/internal/client/keyform"
)

// Room is a namespace that was checked.
type Room[K comparable, V any] struct {
	mayfly.Namespace[K, V]
	pattern string
	form    keyform.Form[K]
}

// Of checks ns for a pattern of this name, which begins its errors. The pattern adds its own checks to the list.
func Of[K comparable, V any](pattern string, ns mayfly.Namespace[K, V]) (Room[K, V], *check.List) {
	c := check.In(pattern + ": ")
	c.Wrap(ns.Validate())
	form, _ := keyform.Of(ns.Key) // its error is one of Validate's
	if ns.Codec == nil {
		ns.Codec = mayfly.DefaultCodec[V]()
	}
	return Room[K, V]{ns, pattern, form}, c
}

// Jittered reports whether the TTL changes from value to value.
func (r Room[K, V]) Jittered() bool {
	return r.Jitter.Fraction != 0 || r.Jitter.Floor != 0 || r.Jitter.Ceiling != 0
}

// FullKey returns the key as Redis knows it.
func (r Room[K, V]) FullKey(key K) (string, error) { return r.form.Full(r.Prefix, key) }

// FullKeys returns keys as Redis knows them. Its error says what was being done.
func (r Room[K, V]) FullKeys(doing string, keys []K) (fulls []string, err error) {
	fulls = make([]string, len(keys))
	for i, key := range keys {
		if fulls[i], err = r.FullKey(key); err != nil {
			return nil, r.Fail(doing, key, err)
		}
	}
	return fulls, nil
}

// Do runs f with the full name of key. Its error says what was being done.
func (r Room[K, V]) Do(doing string, key K, f func(full string) error) error {
	full, err := r.FullKey(key)
	if err == nil {
		err = f(full)
	}
	if err == nil {
		return nil // without boxing the key
	}
	return r.Fail(doing, key, err)
}

// Fail wraps err, once, with what was done to which key. Nil stays nil.
func (r Room[K, V]) Fail(doing string, key any, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %q: %w", r.pattern, doing, fmt.Sprint(key), err)
}
