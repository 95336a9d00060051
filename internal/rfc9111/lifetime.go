package rfc9111

import (
	"net/http"
	"strings"
	"time"
)

// lifetime is the freshness_lifetime of RFC 9111, section 4.2.1: s-maxage, or max-age, or Expires; explicit reports whether
// one of them was present, even if invalid, which counts as 0. The argument expires says whether Expires counts.
func lifetime(d Directives, h http.Header, expires bool, received time.Time) (life time.Duration, explicit bool) {
	switch lines := h["Expires"]; {
	case d.SMaxAge.Given:
		return d.SMaxAge.Duration(), true
	case d.MaxAge.Given:
		return d.MaxAge.Duration(), true
	case !expires || len(lines) == 0:
		return 0, false
	case len(lines) > 1: // ambiguous
		return 0, true
	default:
		t, ok := ParseDate(lines[0], received)
		if !ok { // "0" is in the past: section 5.3
			return 0, true
		}
		return between(dateOf(h, received), t), true
	}
}

// guess is the heuristic of section 4.2.2: a tenth of the time since the response was last modified.
func guess(h http.Header, received time.Time) time.Duration {
	if modified, ok := lastModified(h, received); ok {
		return between(modified, dateOf(h, received)) / 10
	}
	return 0
}

// between is the time from one date to a later one, in whole seconds; 0 if it is not later.
func between(from, to time.Time) time.Duration {
	return time.Duration(min(max(0, to.Unix()-from.Unix()), maxDelta)) * time.Second
}

// lastModified returns Last-Modified, if there is exactly one.
func lastModified(h http.Header, now time.Time) (time.Time, bool) {
	return ParseDate(only(h["Last-Modified"]), now)
}

// heuristic are the statuses that may be stored and reused without explicit freshness (RFC 9110, section 15.1), except 206:
// this cache does not combine parts.
var heuristic = []int{200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501}

// ageOf returns what Age says: the first value of its first line, 0 if that is not a number of seconds (RFC 9111,
// section 5.1).
func ageOf(h http.Header) time.Duration {
	first, _, _ := strings.Cut(h.Get("Age"), ",")
	n, _ := delta(trim(first))
	return time.Duration(n) * time.Second
}

// initialAge is the corrected_initial_age of RFC 9111, section 4.2.3. Date has whole seconds, so it is compared with
// a time in whole seconds: a response made in the current second has age 0.
func initialAge(x Exchange, h http.Header) time.Duration {
	apparent := x.Received.Truncate(time.Second).Sub(dateOf(h, x.Received))
	corrected := ageOf(h) + max(0, x.Received.Sub(x.Sent))
	return min(max(0, apparent, corrected), maxDelta*time.Second)
}

// dateOf returns when the origin made the response: its Date, or if it has none, its arrival.
func dateOf(h http.Header, received time.Time) time.Time {
	if t, ok := ParseDate(only(h["Date"]), received); ok {
		return t
	}
	return received.Truncate(time.Second)
}
