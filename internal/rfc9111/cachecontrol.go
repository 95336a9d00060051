package rfc9111

import "net/http"

// Directives are what a Cache-Control says, of a request or of a response.
type Directives struct {
	MaxAge               Delta
	SMaxAge              Delta
	MinFresh             Delta
	MaxStale             Delta // without an argument: any age
	StaleWhileRevalidate Delta
	StaleIfError         Delta

	NoStore, NoCache, Private, Public       bool
	MustRevalidate, ProxyRevalidate         bool
	MustUnderstand, Immutable, OnlyIfCached bool

	// Fields are the header fields that a qualified private="..." or no-cache="..." lists: nobody else gets them.
	Fields []string
}

// Delta is a number of seconds that may not have been given. It is at most 2^31, and 0 where it was not a number.
type Delta struct {
	Seconds int64
	Given   bool
}

// ParseRequest returns the directives of a request. Pragma: no-cache counts where there is no Cache-Control.
func ParseRequest(h http.Header) Directives { return Directives{} }

// ParseResponse returns the directives of a response's Cache-Control.
func ParseResponse(h http.Header) Directives { return Directives{} }
