package rfc9111

import (
	"strconv"
	"time"
)

// Forward says why a request went to the origin (RFC 9211, section 2.2).
type Forward string

const (
	FwdBypass   Forward = "bypass"    // the cache was not asked
	FwdMethod   Forward = "method"    // its method is not one a cache answers
	FwdURIMiss  Forward = "uri-miss"  // nothing stored for the URI
	FwdVaryMiss Forward = "vary-miss" // nothing stored for this variant
	FwdMiss     Forward = "miss"      // uri-miss or vary-miss
	FwdRequest  Forward = "request"   // there was a fresh response, but the request's directives forbade its use
	FwdStale    Forward = "stale"     // there was a stale one
)

// CacheStatus is what a cache says of how it handled a request (RFC 9211).
type CacheStatus struct {
	Cache     string // its name
	Hit       bool
	Fwd       Forward // unless it was a hit
	FwdStatus int     // what the origin answered, if the client gets another status; 0: not sent
	TTL       time.Duration
	HasTTL    bool
	Stored    bool
	Collapsed bool
	Key       string
	Detail    string
}

// maxText bounds the length of a key or a detail.
const maxText = 512

// Append appends it as one member of the field's list.
func (s CacheStatus) Append(dst []byte) []byte {
	dst = appendToken(dst, s.Cache)
	if s.Hit {
		dst = append(dst, "; hit"...)
	} else if s.Fwd != "" {
		dst = append(append(dst, "; fwd="...), s.Fwd...)
	}
	if s.FwdStatus != 0 {
		dst = strconv.AppendInt(append(dst, "; fwd-status="...), int64(s.FwdStatus), 10)
	}
	if s.HasTTL {
		dst = strconv.AppendInt(append(dst, "; ttl="...), floorSeconds(s.TTL), 10)
	}
	if s.Stored {
		dst = append(dst, "; stored"...)
	}
	if s.Collapsed {
		dst = append(dst, "; collapsed"...)
	}
	if s.Key != "" {
		dst = appendString(append(dst, "; key="...), s.Key)
	}
	if s.Detail != "" {
		dst = appendToken(append(dst, "; detail="...), s.Detail)
	}
	return dst
}

// floorSeconds rounds down, so that a stale response is stale by at least a second.
func floorSeconds(d time.Duration) int64 {
	n := int64(d / time.Second)
	if d%time.Second < 0 {
		n--
	}
	return n
}

// appendToken writes s as a token of a Structured Field if it is one, else as a string (RFC 8941, section 3.3).
func appendToken(dst []byte, s string) []byte {
	if s == "" || !(s[0] == '*' || 'a' <= s[0]|0x20 && s[0]|0x20 <= 'z') {
		return appendString(dst, s)
	}
	for i := range len(s) {
		if c := s[i]; !tchar(c) && c != ':' && c != '/' {
			return appendString(dst, s)
		}
	}
	return append(dst, s...)
}

// appendString writes s as a string of at most maxText bytes, percent-encoding all but printable ASCII.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	text, from := s[:min(len(s), maxText)], 0
	for i := range len(text) { // fast path: nothing to escape
		c := text[i]
		switch {
		case c < ' ' || c > '~':
			dst = appendHex(append(dst, text[from:i]...), c)
		case c == '"' || c == '\\':
			dst = append(append(dst, text[from:i]...), '\\', c)
		default:
			continue
		}
		from = i + 1
	}
	dst = append(dst, text[from:]...)
	if len(s) > maxText {
		dst = append(dst, "..."...)
	}
	return append(dst, '"')
}
