package ttlguard

import (
	"encoding"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// words are the arguments of a command as they were given to go-redis.
type words []any

// text returns a word as go-redis writes it.
func (w words) text(i int) string {
	if i < len(w) {
		return text(w[i])
	}
	return ""
}

func text(word any) string {
	switch word := word.(type) {
	case nil:
		return ""
	case string:
		return word
	case []byte:
		return string(word)
	case int:
		return strconv.Itoa(word)
	case int64:
		return strconv.FormatInt(word, 10)
	case bool:
		if word {
			return "1"
		}
		return "0"
	case time.Time:
		return word.Format(time.RFC3339Nano)
	case time.Duration:
		return strconv.FormatInt(int64(word), 10)
	case net.IP:
		return string(word)
	}
	if p := reflect.ValueOf(word); p.Kind() == reflect.Pointer {
		if _, marshals := word.(encoding.BinaryMarshaler); !marshals || p.Type() == reflect.TypeFor[*time.Time]() {
			if p.IsNil() {
				p = reflect.New(p.Type().Elem())
			}
			return text(p.Elem().Interface())
		}
	}
	if m, marshals := word.(encoding.BinaryMarshaler); marshals {
		bytes, _ := m.MarshalBinary() // if it fails, so does the command
		return string(bytes)
	}
	return fmt.Sprint(word)
}

// hasPrefix reports whether a word as go-redis writes it begins with prefix. It makes no copy of the common types.
func hasPrefix(word any, prefix string) bool {
	switch word := word.(type) {
	case string:
		return strings.HasPrefix(word, prefix)
	case []byte:
		return len(word) >= len(prefix) && string(word[:len(prefix)]) == prefix
	case *string:
		return word != nil && strings.HasPrefix(*word, prefix)
	case nil, int, int64, uint64, float64, bool, time.Time, time.Duration:
		return false
	case encoding.BinaryMarshaler:
		return strings.HasPrefix(text(word), prefix)
	}
	return false
}

// number returns a word as a number, or false if it is not one.
func (w words) number(i int) (int64, bool) {
	n, err := strconv.ParseInt(w.text(i), 10, 64)
	return n, err == nil && n < beyond
}

// beyond is greater than any time that Redis accepts: 100,000 years in milliseconds.
const beyond = 1 << 52

// find returns the position of the first of options, from i on; 0 if there is none.
func (w words) find(i int, options ...string) int {
	for ; i < len(w); i++ {
		if slices.ContainsFunc(options, func(o string) bool { return strings.EqualFold(w.text(i), o) }) {
			return i
		}
	}
	return 0
}

// span returns l if word i is a number that Redis accepts for it, else refused.
func (w words) span(i int, l length) length {
	if n, ok := w.number(i); !ok || n <= 0 {
		return refused
	}
	return l
}

// options are the options of a command that can set a TTL.
type options struct {
	ttl   length
	has   map[string]bool
	odd   bool // one of them is unknown to us; a newer server may know it
	wrong bool // the server refuses the command because of them
}

// options reads the options from word i on. It knows the TTLs, and those in known, which have no argument.
func (w words) options(i int, known ...string) options {
	o := options{has: map[string]bool{}}
	for ; i < len(w); i++ {
		switch word := strings.ToLower(w.text(i)); word {
		case "ex", "px", "exat", "pxat":
			o.wrong = o.wrong || o.ttl != none
			l := some
			if strings.HasSuffix(word, "at") {
				l = until
			}
			i++
			o.ttl = w.span(i, l)
		default:
			o.odd = o.odd || !slices.Contains(known, word)
			o.has[word] = true
		}
	}
	exclusive := func(a, b bool) { o.wrong = o.wrong || a && b }
	exclusive(o.has["nx"], o.has["xx"])
	exclusive(o.has["keepttl"] || o.has["persist"], o.ttl != none)
	exclusive(o.has["keepttl"], o.has["persist"])
	o.wrong = o.wrong || o.ttl == refused
	return o
}
