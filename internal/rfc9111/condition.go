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
// If-Match, If-Unmodified-Since): it goes there, past the cache.
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
	lines := request["If-Modified-Since"]
	if len(lines) != 1 {
		return false
	}
	since, ok := ParseDate(lines[0], received)
	if !ok {
		return false
	}
	modified, ok := lastModified(stored, received)
	if !ok {
		modified = dateOf(stored, received)
	}
	return !modified.After(since)
}

// anyMatches compares weakly (RFC 9110, section 8.8.3.2): W/ does not count. What is not an entity tag matches what is
// spelled the same.
func anyMatches(lines []string, tag string) (match bool) {
	elements(lines, func(e string) {
		match = match || e == "*" || tag != "" && strings.TrimPrefix(e, "W/") == strings.TrimPrefix(tag, "W/")
	})
	return match
}

// etag returns the entity tag of a response, "" if there is none, or more than one.
func etag(h http.Header) string {
	if lines := h["Etag"]; len(lines) == 1 {
		return trim(lines[0])
	}
	return ""
}

func strong(tag string) bool { return tag != "" && !strings.HasPrefix(tag, "W/") }

func hasValidator(h http.Header, now time.Time) bool {
	_, ok := lastModified(h, now)
	return ok || etag(h) != ""
}

// Header304 returns the header of a 304 about the stored response: all of it but what describes a body (RFC 9110,
// section 15.4.5). The argument is not changed.
func Header304(stored http.Header) http.Header {
	out := make(http.Header, len(stored))
	for name, lines := range stored {
		switch name {
		case "Content-Type", "Content-Length", "Content-Encoding", "Content-Language", "Content-Range", "Content-Md5",
			"Content-Digest", "Content-Disposition", "Accept-Ranges":
		default:
			out[name] = lines
		}
	}
	return out
}

// AskValid makes the header of a request to the origin one that revalidates the stored response (RFC 9111, section
// 4.3.1): its validators take the place of the client's conditions, and of its range, as the answer is to be a whole one.
// It reports whether there was a validator; without one the request is for a new response.
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
