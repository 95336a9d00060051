package rfc9111

import (
	"net/http"
	"strings"
	"time"
)

// Flaw says, for the handler's author, what is wrong with the header of a response that is not stored for this reason. It returns "" if the
// header is well formed and merely not meant for a cache.
func (r Rules) Flaw(reason Reason, x Exchange) (what string) {
	h := Canonical(x.Header)
	switch reason {
	case VaryAny:
		return varyFlaw(h["Vary"])
	case NoFreshness, Expired:
		return r.freshnessFlaw(h, x.Received)
	}
	return ""
}

func varyFlaw(lines []string) string {
	names, star := 0, false
	for name := range elements(lines) {
		if !token(name) {
			return "Vary has what is not the name of a field"
		}
		names++
		star = star || name == "*"
	}
	if names > maxVary && !star {
		return "Vary has more fields than a cache tells apart"
	}
	return ""
}

func (r Rules) freshnessFlaw(h http.Header, received time.Time) string {
	for _, name := range r.Targeted {
		lines := h[http.CanonicalHeaderKey(name)]
		if _, ok := parseTargeted(lines); !ok && lines != nil {
			return name + " is not a dictionary"
		}
	}
	for e := range elements(h["Cache-Control"]) {
		name, arg, _, _ := cutDirective(e)
		switch _, number := delta(arg); strings.ToLower(trim(name)) {
		case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error":
			if !number || trim(name) != name {
				return "Cache-Control has a malformed number"
			}
		default:
			if !token(name) {
				return "Cache-Control has what is not a directive"
			}
		}
	}
	for _, field := range []string{"Expires", "Date", "Last-Modified"} {
		line := only(h[field])
		_, isDate := ParseDate(line, received)
		past := field == "Expires" && (trim(line) == "0" || trim(line) == "-1") // allowed: both mean "already expired"
		switch n := len(h[field]); {
		case n > 1:
			return field + " has several lines"
		case n == 1 && !isDate && !past:
			return field + " is not a date"
		}
	}
	if len(h["Etag"]) > 1 {
		return "Etag has several lines"
	}
	if ageOf(h).Seconds() >= maxDelta {
		return "Age is beyond all measure"
	}
	return ""
}
