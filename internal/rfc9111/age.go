package rfc9111

import (
	"net/http"
	"strings"
	"time"
)

// ageOf returns what Age says: the first value of its first line, 0 if that is not a number of seconds (RFC 9111,
// section 5.1).
func ageOf(h http.Header) time.Duration {
	lines := h["Age"]
	if len(lines) == 0 {
		return 0
	}
	first, _, _ := strings.Cut(lines[0], ",")
	n, _ := delta(trim(first))
	return time.Duration(n) * time.Second
}

// initialAge is the corrected_initial_age of RFC 9111, section 4.2.3. Date has whole seconds, so the time it is compared
// with has them too: a response of this second is not old.
func initialAge(x Exchange, h http.Header) time.Duration {
	apparent := x.Received.Truncate(time.Second).Sub(dateOf(h, x.Received))
	corrected := ageOf(h) + max(0, x.Received.Sub(x.Sent))
	return min(max(0, apparent, corrected), maxDelta*time.Second)
}

// dateOf is when the origin made the response, as far as is known: its Date, or when it arrived.
func dateOf(h http.Header, received time.Time) time.Time {
	if lines := h["Date"]; len(lines) == 1 {
		if t, ok := ParseDate(lines[0], received); ok {
			return t
		}
	}
	return received.Truncate(time.Second)
}
