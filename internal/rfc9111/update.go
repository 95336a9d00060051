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

// Freshens reports whether the 200 that answered a HEAD is about a stored GET (RFC 9111, section 4.3.5). same is true if it has the strong entity
// tag of the stored response, and nothing in it contradicts: then it updates the stored response as a 304 would. other is true if a validator, the
// length or an older Date shows that the stored response is not the current one. RFC 9111 would let a Last-Modified, a length or nothing at
// all prove that the two are the same, but these are often the same for pages that differ: those of other users, or of the same second. length is the
// length of the stored body.
func Freshens(stored, head http.Header, length string) (same, other bool) {
	head = Canonical(head)
	for name, is := range map[string][]string{"Etag": stored["Etag"], "Last-Modified": stored["Last-Modified"], "Content-Length": {length}} {
		if got := head[name]; len(got) > 0 && !equal(got, is) {
			return false, true
		}
	}
	if at, ok := ParseDate(only(head["Date"]), time.Time{}); ok {
		if was, stands := ParseDate(only(stored["Date"]), time.Time{}); stands && at.Before(was) {
			return false, true
		}
	}
	tag := etag(head)
	return tag != "" && strong(tag), false
}

func equal(a, b []string) bool { return strings.Join(a, ",") == strings.Join(b, ",") }

// Update returns the stored header updated by a 304 (RFC 9111, section 3.2): each of its fields replaces the stored one, except
// those that frame the stored body or describe its coding, and those that are about its connection only. The old answer's times are dropped: a
// 304 without a Date counts as made now. Neither argument is changed.
func Update(stored, notModified http.Header) http.Header {
	out := make(http.Header, len(stored)+1)
	for name, lines := range stored {
		if name != "Age" && name != "Date" {
			out[name] = lines
		}
	}
	notModified = Canonical(notModified)
	once := make(map[string]bool) // for this connection
	for name := range elements(notModified["Connection"]) {
		once[http.CanonicalHeaderKey(name)] = true
	}
	for name, lines := range notModified {
		if !hop(name) && !once[name] && name != "Content-Length" && name != "Content-Encoding" && name != "Content-Range" {
			out[name] = slices.Clone(lines)
		}
	}
	return out
}
