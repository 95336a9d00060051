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

// words are a command as it was given to go-redis.
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
		bytes, _ := m.MarshalBinary() // an error is the command's
		return string(bytes)
	}
	return fmt.Sprint(word)
}

// hasPrefix reports whether a word as go-redis writes it begins with prefix. It copies nothing of what a program commonly gives.
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

// number returns a word as a number, and reports false if it is none.
func (w words) number(i int) (int64, bool) {
	n, err := strconv.ParseInt(w.text(i), 10, 64)
	return n, err == nil && n < beyond
}

// beyond is greater than any time that Redis accepts: 100,000 years in milliseconds.
const beyond = 1 << 52

// find returns where one of options stands, from i on; 0 if nowhere.
func (w words) find(i int, options ...string) int {
	for ; i < len(w); i++ {
		if slices.ContainsFunc(options, func(o string) bool { return strings.EqualFold(w.text(i), o) }) {
			return i
		}
	}
	return 0
}

// span is l if word i is a number that Redis takes for it.
func (w words) span(i int, l length) length {
	if n, ok := w.number(i); !ok || n <= 0 {
		return refused
	}
	return l
}

// options are those of a command that can have a TTL.
type options struct {
	ttl   length
	has   map[string]bool
	odd   bool // there is one that we do not know: a newer server may
	wrong bool // the server refuses the command for them
}

// options reads those from word i on. Known are those of known that have no argument, and the TTLs.
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
