package rfc9111

import (
	"net/http"
	"net/url"
)

// Keys says which requests ask for the same resource. The zero value tells apart what RFC 9110 does: scheme, host, path,
// and the query as it is.
type Keys struct {
	// AnyHost leaves the host out: the handler answers all of them alike.
	AnyHost bool

	// Scheme stands in for what the connection says, as behind a proxy that ends TLS. "" believes the connection.
	Scheme string

	// SortQuery makes the order of different query parameters not count.
	SortQuery bool

	// DropQuery are query parameters that do not count; a last "*" matches any rest ("utm_*").
	DropQuery []string
}

// Key returns the key of a request's resource, the same for GET and HEAD: its URL, normalised. Different resources have
// different keys, whatever the request says; ok is false for a request whose host or path is not one, and which a cache
// then leaves alone.
func (k Keys) Key(r *http.Request) (key string, ok bool) { return "", false }

// Of returns the key of an absolute URL: what Key returns for a request of it.
func (k Keys) Of(u *url.URL) (key string, ok bool) { return "", false }
