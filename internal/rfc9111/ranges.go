package rfc9111

import "net/http"

// Span is a part of a body: its first and last byte, both in it.
type Span struct{ First, Last int64 }

// Part says what a request with a Range gets of a stored 200.
type Part uint8

const (
	Whole         Part = iota // 200: no range, one that is not understood, several, or If-Range does not match
	Single                    // 206
	Unsatisfiable             // 416
)

// Range returns the part of a stored 200 of size bytes that a request asks for.
func Range(request, stored http.Header, size int64) (Span, Part) { return Span{}, Whole }

// ContentRange is the field of that name of a 206.
func (s Span) ContentRange(size int64) string { return "" }
