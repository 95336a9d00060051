// Package keyspace is a namespace as a pattern uses it: checked, with a codec, with the full names of its keys, and with errors that name
// the pattern and the key.
package keyspace

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/internal/client/keyform"
)

// Room is a checked namespace, with its defaults filled in.
type Room[K comparable, V any] struct {
	mayfly.Namespace[K, V]
	pattern string
	form    keyform.Form[K]
}

// Of checks ns for a pattern of this name, which its errors begin with. The pattern adds its own checks to the list. Of reports settings
// that are allowed but dangerous to the namespace's observer.
func Of[K comparable, V any](pattern string, ns mayfly.Namespace[K, V]) (Room[K, V], *check.List) {
	c := check.In(pattern + ": ")
	err := ns.Validate()
	c.Wrap(err)
	ns.Name, ns.Prefix = keyform.Names(ns.Name, ns.Prefix)
	if last, _ := utf8.DecodeLastRuneInString(ns.Prefix); err == nil && ns.Observer != nil && (unicode.IsLetter(last) || unicode.IsDigit(last)) {
		ns.Observer.Observe(context.Background(), mayfly.Event{Kind: mayfly.KindWarning, Outcome: mayfly.OutcomeOK, Namespace: ns.Name, Err: fmt.Errorf(
			"%s: Namespace.Prefix %q ends without a separator: keys of a longer prefix look like its own; end it with one, as in %[2]q + \":\"", pattern, ns.Prefix)})
	}
	form, _ := keyform.Of(ns.Key) // its error is one of Validate's
	if ns.Codec == nil {
		ns.Codec = mayfly.DefaultCodec[V]()
	}
	return Room[K, V]{ns, pattern, form}, c
}

// OwnForm is Of for a pattern that writes its values in a form of its own. why tells the user the reason.
func OwnForm[K comparable, V any](pattern string, ns mayfly.Namespace[K, V], why string) (Room[K, V], *check.List) {
	given := ns
	ns.Codec = none[V]{}
	room, c := Of(pattern, ns)
	Unused(c, given, why, "Codec", "Plain", "Clone", "Cost")
	OneTTL(c, given)
	return room, c
}

// OneTTL refuses a MaxTTL, for a pattern that gives all values the same TTL.
func OneTTL[K comparable, V any](c *check.List, ns mayfly.Namespace[K, V]) {
	c.Refuse(ns.MaxTTL != 0, "Namespace.MaxTTL must be zero: all its keys have Namespace.TTL")
}

// CheckTTL returns an error if a value may not have this TTL of its own.
func (r Room[K, V]) CheckTTL(name string, ttl time.Duration) error {
	if err := check.TTL(name, ttl); err != nil {
		return err
	}
	if most := r.Longest(); ttl > most {
		return fmt.Errorf("%s is %v, but Namespace.MaxTTL allows at most %v (if zero, the limit is TTL): set MaxTTL to the longest TTL that a value may have", name, ttl, most)
	}
	return nil
}

// Longest is the longest TTL that a value may have.
func (r Room[K, V]) Longest() time.Duration { return cmp.Or(r.MaxTTL, r.TTL) }

// none is the codec of a pattern that does not use one.
type none[V any] struct{ mayfly.Codec[V] }

// Unused refuses each of the named fields that is set, since it means nothing to the pattern.
func Unused[K comparable, V any](c *check.List, ns mayfly.Namespace[K, V], why string, fields ...string) {
	for _, name := range fields {
		zero := "nil"
		field := reflect.ValueOf(ns).FieldByName(name)
		if field.Kind() == reflect.Bool {
			zero = "false"
		}
		c.Refuse(!field.IsZero(), "Namespace.%s must be %s: %s", name, zero, why)
	}
}

// FullKey returns the key as Redis knows it.
func (r Room[K, V]) FullKey(key K) (string, error) { return r.form.Full(r.Prefix, key) }

// FullKeys returns keys as Redis knows them. Its error says what the caller was doing.
func (r Room[K, V]) FullKeys(doing string, keys []K) (fulls []string, err error) {
	fulls = make([]string, len(keys))
	for i, key := range keys {
		if fulls[i], err = r.FullKey(key); err != nil {
			return nil, r.Nameless(doing, key, err)
		}
	}
	return fulls, nil
}

// Do runs f with the full name of key. Its error says what the caller was doing.
func (r Room[K, V]) Do(doing string, key K, f func(full string) error) error {
	full, err := r.FullKey(key)
	if err != nil {
		return r.Nameless(doing, key, err)
	}
	return r.Fail(doing, full, f(full))
}

// Fail wraps err once, with what was being done to which key, by its full name: that is what an operator looks for in Redis. Nil stays nil.
func (r Room[K, V]) Fail(doing, full string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s %q: %w", r.pattern, doing, full, err)
}

// Nameless is Fail for a key that has no full name, for the reason err.
func (r Room[K, V]) Nameless(doing string, key K, err error) error {
	return r.Fail(doing, fmt.Sprint(key), err)
}
