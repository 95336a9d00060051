package rfc9111

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Selects reports whether a 304 speaks of the stored response (RFC 9111, section 4.3.4): the validator that it has is the
// stored one, a strong one exactly so. One without any answers what was asked.
func Selects(stored, notModified http.Header) bool {
	notModified = Canonical(notModified)
	if tag := etag(notModified); tag != "" {
		if strong(tag) {
			return tag == etag(stored)
		}
		return anyMatches([]string{tag}, etag(stored))
	}
	if modified := notModified["Last-Modified"]; len(modified) > 0 && etag(stored) == "" {
		return equal(modified, stored["Last-Modified"])
	}
	return true
}

// Freshens reports whether the 200 that answered a HEAD speaks of a stored GET (RFC 9111, section 4.3.5): the validators
// and the length that it has are the stored ones, and it is not older. It then updates the stored response, as a 304 would, or else
// voids it. Where it has nothing to compare, no Date either, known is false, and it does neither. length is that of the stored body.
func Freshens(stored, head http.Header, length string) (same, known bool) {
	head, same = Canonical(head), true
	for name, is := range map[string][]string{"Etag": stored["Etag"], "Last-Modified": stored["Last-Modified"], "Content-Length": {length}} {
		if got := head[name]; len(got) > 0 {
			same, known = same && equal(got, is), true
		}
	}
	if at, ok := ParseDate(only(head["Date"]), time.Time{}); ok {
		was, stands := ParseDate(only(stored["Date"]), time.Time{})
		same, known = same && !(stands && at.Before(was)), true
	}
	return same && known, known
}

func equal(a, b []string) bool { return strings.Join(a, ",") == strings.Join(b, ",") }

// Update returns the stored header with what a 304 renews (RFC 9111, section 3.2): each field that it has replaces the
// stored one, but for those that frame the stored body or say how it is coded. The times of the old answer go: what came
// without a Date came now. Neither argument is changed.
func Update(stored, notModified http.Header) http.Header {
	out := make(http.Header, len(stored)+1)
	for name, lines := range stored {
		if name != "Age" && name != "Date" {
			out[name] = lines
		}
	}
	for name, lines := range Canonical(notModified) {
		if !hop(name) && name != "Content-Length" && name != "Content-Encoding" && name != "Content-Range" {
			out[name] = slices.Clone(lines)
		}
	}
	return out
}
