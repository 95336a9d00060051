package rfc9111

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Selects reports whether a 304 is about the stored response (RFC 9111, section 4.3.4): its validator is the stored one, compared
// exactly if strong. A 304 without a validator is about the response that the request asked to revalidate.
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

// Freshens reports whether the 200 that answered a HEAD is about a stored GET (RFC 9111, section 4.3.5): its validators and length,
// if present, are the stored ones, and it is not older. It then updates the stored response as a 304 would; otherwise it voids it. If it
// has nothing to compare, not even a Date, known is false and it does neither. length is the length of the stored body.
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

// Update returns the stored header updated by a 304 (RFC 9111, section 3.2): each of its fields replaces the stored one, except
// those that frame the stored body or describe its coding. The old answer's times are dropped: a 304 without a Date counts as
// made now. Neither argument is changed.
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
