package rfc9111

import (
	"net/http"
	"strings"
	"time"
)

// Conditional reports whether the request has a condition that a cache may answer: If-None-Match or If-Modified-Since.
func Conditional(request http.Header) bool {
	return request["If-None-Match"] != nil || request["If-Modified-Since"] != nil
}

// ForOrigin reports whether the request has a condition that only the origin may answer (RFC 9111, section 4.3.2:
// If-Match, If-Unmodified-Since): such a request bypasses the cache.
func ForOrigin(request http.Header) bool {
	return request["If-Match"] != nil || request["If-Unmodified-Since"] != nil
}

// NotModified reports whether a stored 200 that came at received is what the client of a conditional GET or HEAD already
// has (RFC 9111, section 4.3.2): its ETag is among those of If-None-Match, compared weakly, or there is no If-None-Match
// and it is not newer than If-Modified-Since. A response without Last-Modified is as new as its Date.
func NotModified(request, stored http.Header, received time.Time) bool {
	if tags := request["If-None-Match"]; tags != nil {
		return anyMatches(tags, etag(stored))
	}
	since, ok := ParseDate(only(request["If-Modified-Since"]), received)
	if !ok {
		return false
	}
	modified, ok := lastModified(stored, received)
	if !ok {
		modified = dateOf(stored, received)
	}
	return !modified.After(since)
}

// anyMatches compares weakly (RFC 9110, section 8.8.3.2): W/ does not count. A malformed entity tag matches its
// own spelling.
func anyMatches(lines []string, tag string) bool {
	for e := range elements(lines) {
		if e == "*" || tag != "" && strings.TrimPrefix(e, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// etag returns the entity tag of a response, "" if there is none, or more than one.
func etag(h http.Header) string { return trim(only(h["Etag"])) }

func strong(tag string) bool { return tag != "" && !strings.HasPrefix(tag, "W/") }

// StripBody removes the fields that describe a body from the header of a 304 or a 416 (RFC 9110, section 15.4.5).
func StripBody(h http.Header) {
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Range",
		"Content-Md5", "Content-Digest", "Content-Disposition", "Accept-Ranges"} {
		delete(h, name)
	}
}

// AskValid changes a request's header to revalidate the stored response at the origin (RFC 9111, section 4.3.1): the stored
// validators replace the client's conditions and its range, since a complete answer is wanted. It reports whether there
// was a validator; without one the request asks for a new response.
func AskValid(request, stored http.Header) bool {
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "If-Range", "Range"} {
		delete(request, name)
	}
	tag := etag(stored)
	if tag != "" {
		request["If-None-Match"] = []string{tag}
	}
	modified := stored["Last-Modified"]
	if len(modified) == 1 {
		request["If-Modified-Since"] = []string{modified[0]}
	}
	return tag != "" || len(modified) == 1
}
