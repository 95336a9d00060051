package rfc9111

// Reason says why a response is not stored, in words short enough for the detail of a Cache-Status.
type Reason string

const (
	Storable       Reason = ""
	Method         Reason = "method"   // only GET is stored
	Interim        Reason = "interim"  // 1xx
	Partial        Reason = "partial"  // 206 and 304 are parts of something
	NoStore        Reason = "no-store" // of the response
	RequestNoStore Reason = "request-no-store"
	Private        Reason = "private"
	Authorization  Reason = "authorization" // and no public, must-revalidate or s-maxage
	SetCookie      Reason = "set-cookie"
	VaryAny        Reason = "vary"            // by "*", or by more than this cache tells apart
	NotUnderstood  Reason = "must-understand" // with a status that it does not
	NoFreshness    Reason = "no-freshness"    // no explicit freshness, nothing to guess it from, and no validator
	Expired        Reason = "expired"         // stale on arrival, no validator, no stale window
)
