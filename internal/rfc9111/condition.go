package rfc9111

import (
	"net/http"
	"time"
)

// Conditional reports whether the request has a condition that a cache may answer: If-None-Match or If-Modified-Since.
func Conditional(request http.Header) bool { return false }

// ForOrigin reports whether the request has a condition that only the origin may answer (If-Match,
// If-Unmodified-Since): it goes there, past the cache.
func ForOrigin(request http.Header) bool { return false }

// NotModified reports whether a stored 200, received then, is what the client of a conditional request already has.
func NotModified(request, stored http.Header, received time.Time) bool { return false }

// Header304 returns the header of a 304 about the stored response: all but what describes a body.
func Header304(stored http.Header) http.Header { return stored.Clone() }

// AskValid makes a request to the origin one that revalidates the stored response: its validators take the place of the
// client's conditions and range. It reports whether there was a validator.
func AskValid(request, stored http.Header) bool { return false }
