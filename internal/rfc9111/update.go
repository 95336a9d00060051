package rfc9111

import "net/http"

// Selects reports whether a 304 speaks of the stored response (RFC 9111, section 4.3.4): its validator, if it has one, is
// the stored one.
func Selects(stored, notModified http.Header) bool { return true }

// Update returns the stored header with what a 304 renews: each field it has replaces the stored one, but for those that
// frame or describe the body, which is still the stored one. Neither argument is changed.
func Update(stored, notModified http.Header) http.Header { return stored.Clone() }
