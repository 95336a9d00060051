package rfc9111

import "time"

// Forward says why a request went to the origin (RFC 9211, section 2.2).
type Forward string

const (
	FwdBypass   Forward = "bypass"   // the cache was not asked
	FwdMethod   Forward = "method"   // its method is not one a cache answers
	FwdURIMiss  Forward = "uri-miss" // nothing stored for the URI
	FwdVaryMiss Forward = "vary-miss"
	FwdRequest  Forward = "request" // there was a fresh response, but the request's directives forbade it
	FwdStale    Forward = "stale"
	FwdPartial  Forward = "partial"
)

// CacheStatus is what a cache says of how it handled a request (RFC 9211).
type CacheStatus struct {
	Cache     string // its name
	Hit       bool
	Fwd       Forward
	FwdStatus int // what the origin answered, where it is not what the client gets
	TTL       time.Duration
	HasTTL    bool
	Stored    bool
	Collapsed bool
	Key       string
	Detail    string
}

// Append appends it as one member of the field's list.
func (s CacheStatus) Append(dst []byte) []byte { return dst }
