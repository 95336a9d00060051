package rfc9111

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Span is a part of a body: its first and last byte, inclusive.
type Span struct{ First, Last int64 }

// Part says how much of a stored 200 a request with a Range gets.
type Part uint8

const (
	Whole         Part = iota // 200: no range, one that is not understood, several, an empty body, or If-Range does not match
	Single                    // 206
	Unsatisfiable             // 416
)

// Range returns the part of a stored 200 of size bytes, which came at received, that a GET asks for (RFC 9110, section
// 14.2). A server may ignore Range; this one does if it is malformed or lists several.
func Range(request, stored http.Header, size int64, received time.Time) (Span, Part) {
	unit, spec, ok := strings.Cut(only(request["Range"]), "=")
	if !ok || !strings.EqualFold(trim(unit), "bytes") || !ifRange(request["If-Range"], stored, received) {
		return Span{}, Whole
	}
	first, last, ok := strings.Cut(trim(spec), "-")
	from, fromOK := digits(first, maxPosition)
	to, toOK := digits(last, maxPosition)
	switch {
	case !ok || first != "" && !fromOK || last != "" && !toOK || first == "" && last == "" || first != "" && last != "" && to < from:
		return Span{}, Whole
	case size == 0: // as net/http does: some clients send a Range always, and an empty body is all of it
		return Span{}, Whole
	case first == "" && to == 0, first != "" && from >= size:
		return Span{}, Unsatisfiable
	case first == "":
		return Span{max(0, size-to), size - 1}, Single
	case last == "":
		return Span{from, size - 1}, Single
	}
	return Span{from, min(to, size-1)}, Single
}

// maxPosition is greater than every position in a body; greater numbers are cut to it.
const maxPosition = math.MaxInt64/10 - 1

// ifRange reports whether If-Range allows a part of the stored response (RFC 9110, section 13.1.5): it is absent, or equals the
// response's strong ETag, or its Last-Modified if that is at least a second older than its Date.
func ifRange(lines []string, stored http.Header, received time.Time) bool {
	if lines == nil {
		return true
	}
	want := trim(only(lines))
	if strings.HasSuffix(want, `"`) {
		return strong(want) && want == etag(stored)
	}
	since, ok := ParseDate(want, received)
	modified, isDate := lastModified(stored, received)
	return ok && isDate && since.Equal(modified) && modified.Before(dateOf(stored, received))
}

// ContentRange is the field of that name of a 206 of a body of size bytes.
func (s Span) ContentRange(size int64) string {
	return "bytes " + strconv.FormatInt(s.First, 10) + "-" + strconv.FormatInt(s.Last, 10) + "/" + strconv.FormatInt(size, 10)
}

// Unsatisfied is the Content-Range of a 416 about a body of size bytes.
func Unsatisfied(size int64) string { return "bytes */" + strconv.FormatInt(size, 10) }
