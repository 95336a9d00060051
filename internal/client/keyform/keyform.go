// Package keyform turns a typed key into the text that follows a namespace's prefix.
//
// The form is chosen once, from the key's type, when a namespace is checked: string kinds as they are, types with MarshalText or AppendText
// by that method, integer kinds in decimal. Any other type needs a function from the user. Two different keys of a string or integer kind
// never have the same text.
package keyform

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	"github.com/mayflycache/mayfly/internal/client/check"
)

// MaxLen is the length of the longest key that Redis takes, prefix included.
const MaxLen = 512 << 20

// Form appends the text of a key to dst and returns the extended buffer. It is safe for concurrent use. For string
// and integer kinds it allocates nothing but what dst needs to grow.
type Form[K any] func(dst []byte, key K) ([]byte, error)

// Full returns prefix and the text of key as one string.
func (f Form[K]) Full(prefix string, key K) (string, error) {
	const room = 24 // for the text of most keys
	full, err := f(append(make([]byte, 0, len(prefix)+room), prefix...), key)
	return unsafe.String(unsafe.SliceData(full), len(full)), err // nobody writes to full again
}

// Glob returns the SCAN pattern that matches every name beginning with prefix.
func Glob(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(prefix) + "*"
}

// ErrEmpty is returned for a key without text: its name would be the prefix alone.
var ErrEmpty = errors.New("the key is empty")

// Of returns the form of K. If custom is not nil, it decides instead of the type.
func Of[K any](custom func(K) string) (Form[K], error) {
	form, err := choose(custom)
	if err != nil {
		return nil, err
	}
	return func(dst []byte, key K) ([]byte, error) {
		start := len(dst)
		out, err := form(dst, key)
		switch {
		case err != nil:
			return dst, err
		case len(out) == start:
			return dst, ErrEmpty
		case len(out) > MaxLen:
			return dst, fmt.Errorf("the key has %d bytes, but Redis takes at most %d", len(out), MaxLen)
		}
		return out, nil
	}, nil
}

// AppendPlain appends the text of a key of one of the most common types, as [Of] would without a custom function. It reports false for
// every other type and for a key without text. Unlike a Form it lets dst stay on the caller's stack.
func AppendPlain[K any](dst []byte, key K) ([]byte, bool) {
	switch key := any(key).(type) {
	case string:
		return append(dst, key...), key != "" && len(key) < MaxLen-len(dst)
	case int:
		return strconv.AppendInt(dst, int64(key), 10), true
	case int64:
		return strconv.AppendInt(dst, key, 10), true
	case uint64:
		return strconv.AppendUint(dst, key, 10), true
	}
	return dst, false
}

func choose[K any](custom func(K) string) (Form[K], error) {
	if custom != nil {
		return func(dst []byte, key K) ([]byte, error) { return append(dst, custom(key)...), nil }, nil
	}
	switch any((*K)(nil)).(type) {
	case *string, *int, *int64, *uint64: // the common types, without reflection on each call
		return func(dst []byte, key K) ([]byte, error) {
			dst, _ = AppendPlain(dst, key)
			return dst, nil
		}, nil
	}
	return byType[K]()
}

func byType[K any]() (Form[K], error) {
	t := reflect.TypeFor[K]()
	switch {
	case t.Kind() == reflect.String:
		return func(dst []byte, key K) ([]byte, error) {
			return append(dst, reflect.ValueOf(key).String()...), nil
		}, nil
	case t.Implements(reflect.TypeFor[encoding.TextAppender]()), t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return func(dst []byte, key K) ([]byte, error) {
			if check.IsNil(key) { // its method could panic
				return dst, ErrEmpty
			}
			if key, ok := any(key).(encoding.TextAppender); ok {
				return key.AppendText(dst)
			}
			text, err := any(key).(encoding.TextMarshaler).MarshalText()
			return append(dst, text...), err
		}, nil
	case reflect.Int <= t.Kind() && t.Kind() <= reflect.Int64:
		return func(dst []byte, key K) ([]byte, error) {
			return strconv.AppendInt(dst, reflect.ValueOf(key).Int(), 10), nil
		}, nil
	case reflect.Uint <= t.Kind() && t.Kind() <= reflect.Uintptr:
		return func(dst []byte, key K) ([]byte, error) {
			return strconv.AppendUint(dst, reflect.ValueOf(key).Uint(), 10), nil
		}, nil
	}
	return nil, fmt.Errorf("a key of type %v has no text: give it a MarshalText method or set Namespace.Key", t)
}
