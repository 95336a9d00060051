package rfc9111

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Directives are the content of a request's or a response's Cache-Control (RFC 9111, section 5.2; RFC 5861; RFC 8246).
// If a directive comes twice, the first counts; unknown ones are ignored.
type Directives struct {
	MaxAge               Delta
	SMaxAge              Delta
	MinFresh             Delta
	MaxStale             Delta // without an argument: any age
	StaleWhileRevalidate Delta
	StaleIfError         Delta

	NoStore, NoCache, Private, Public       bool
	MustRevalidate, ProxyRevalidate         bool
	MustUnderstand, Immutable, OnlyIfCached bool

	// Fields are the header fields that a qualified private="..." or no-cache="..." lists, in canonical form: they are
	// not stored. Without a list, or with a malformed one, the directive is about the whole response.
	Fields []string
}

// Delta is an optional number of seconds, at most 2^31. A malformed number counts as 0, which means stale (RFC 9111, section
// 4.2.1).
type Delta struct {
	Seconds int64
	Given   bool
}

// Duration returns d as a time.Duration.
func (d Delta) Duration() time.Duration { return time.Duration(d.Seconds) * time.Second }

// maxDelta replaces greater numbers (RFC 9111, section 1.2.2).
const maxDelta = 1 << 31

// ParseCacheControl returns the directives of a request, or of a response that has no targeted field: see [Rules.Judge].
// Pragma does not count: RFC 9111, section 5.4, deprecates it.
func ParseCacheControl(h http.Header) (d Directives) {
	for e := range elements(h["Cache-Control"]) {
		d.add(cutDirective(e))
	}
	return d
}

// CheckCacheControl returns an error for a response's Cache-Control that does not say what its author meant: it has a malformed directive
// or a malformed number.
func CheckCacheControl(value string) error {
	for e := range elements([]string{value}) {
		name, arg, has, _ := cutDirective(e)
		switch strings.ToLower(name) {
		case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error":
			if _, ok := delta(arg); !ok {
				return fmt.Errorf("%q must be a number of seconds, as in %s=60", e, name)
			}
		case "public", "no-store", "must-revalidate", "proxy-revalidate", "must-understand", "no-transform", "immutable":
			if has {
				return fmt.Errorf("%q takes no value", e)
			}
		case "private", "no-cache":
		default:
			return fmt.Errorf("%q is no directive of a response", e)
		}
	}
	return nil
}

// cutDirective cuts "name=arg", whose argument may be missing or quoted.
func cutDirective(e string) (name, arg string, has, quoted bool) {
	name, arg, has = strings.Cut(e, "=")
	if text, ok := unquote(arg); ok {
		return name, text, true, true
	}
	return name, arg, has, false
}

// add adds one directive. Whitespace around "=" is not allowed, and makes a max-age invalid.
func (d *Directives) add(name, arg string, has, quoted bool) {
	if bare := trim(name); bare != name {
		name, arg = bare, " "
	}
	switch strings.ToLower(name) {
	case "max-age":
		d.MaxAge.set(arg)
	case "s-maxage":
		d.SMaxAge.set(arg)
	case "min-fresh":
		d.MinFresh.set(arg)
	case "stale-while-revalidate":
		d.StaleWhileRevalidate.set(arg)
	case "stale-if-error":
		d.StaleIfError.set(arg)
	case "max-stale":
		if !has {
			arg = "2147483648"
		}
		d.MaxStale.set(arg)
	case "no-cache":
		d.NoCache = !d.list(arg, quoted) || d.NoCache
	case "private":
		d.Private = !d.list(arg, quoted) || d.Private
	case "no-store":
		d.NoStore = true
	case "public":
		d.Public = true
	case "must-revalidate":
		d.MustRevalidate = true
	case "proxy-revalidate":
		d.ProxyRevalidate = true
	case "must-understand":
		d.MustUnderstand = true
	case "immutable":
		d.Immutable = true
	case "only-if-cached":
		d.OnlyIfCached = true
	}
}

// list adds the fields of a qualified directive. It reports whether there were any and all of them were valid names: otherwise the
// directive is about everything.
func (d *Directives) list(arg string, quoted bool) bool {
	if !quoted {
		return false
	}
	before, names := len(d.Fields), true
	for name := range elements([]string{arg}) {
		names = names && token(name)
		d.Fields = append(d.Fields, http.CanonicalHeaderKey(name))
	}
	return names && len(d.Fields) > before
}

func (d *Delta) set(arg string) {
	if !d.Given {
		d.Seconds, d.Given = 0, true
		if n, ok := delta(arg); ok {
			d.Seconds = n
		}
	}
}

// delta parses s as a number of seconds, at most 2^31.
func delta(s string) (n int64, ok bool) { return digits(s, maxDelta) }
