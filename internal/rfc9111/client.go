package rfc9111

import (
	"net/http"
	"net/url"
	"strings"
)

// A resource is named by the URL that the client asked for. Handlers around the cache may have changed the URL that the handler sees:
// http.StripPrefix, middlewares that separate tenants, proxies that trust X-Forwarded-Proto. A changed URL is a variant of the
// client's, as if Vary had named it: so mounts and tenants do not merge, and a purge of the client's URL reaches all variants.

// ClientURL returns a copy of the URL that the client of r asked for; nil if that is not a URL.
func ClientURL(r *http.Request) *url.URL {
	u, _, ok := clientURL(r)
	if !ok {
		return nil
	}
	copied := *u
	return &copied
}

// clientURL returns the URL that the client asked for, and whether r.URL is still that one. A request without a RequestURI, as
// adapters and tests make them, has r.URL only. ok is false if the target is not a URL.
func clientURL(r *http.Request) (u *url.URL, same, ok bool) {
	if r.RequestURI == "" || spelledAs(r.URL, r.RequestURI) {
		return r.URL, true, true
	}
	u, err := url.ParseRequestURI(r.RequestURI)
	if err != nil {
		return nil, false, false
	}
	return u, *u == *r.URL, true
}

// spelledAs reports whether target parses to the URL u, for URLs with a single spelling. It allocates nothing.
func spelledAs(u *url.URL, target string) bool {
	if u.RawPath != "" || u.Opaque != "" || u.User != nil || u.Fragment != "" || u.ForceQuery {
		return false
	}
	if u.Scheme != "" {
		n := len(u.Scheme) + len("://")
		if len(target) < n+len(u.Host) || target[:n-len("://")] != u.Scheme || target[n-len("://"):n] != "://" || target[n:n+len(u.Host)] != u.Host {
			return false
		}
		target = target[n+len(u.Host):]
	} else if u.Host != "" {
		return false
	}
	n := len(u.Path)
	if n == 0 || len(target) < n || target[0] != '/' || target[:n] != u.Path || strings.IndexByte(u.Path, '%') >= 0 || strings.IndexByte(u.Path, '?') >= 0 {
		return false
	}
	if len(target) == n {
		return u.RawQuery == ""
	}
	return target[n] == '?' && u.RawQuery != "" && target[n+1:] == u.RawQuery
}

// inner returns the URL that the handler sees in place of the client's, in a normal form without the parts that do not count. ok is
// false for a malformed query.
func (k Keys) inner(r *http.Request, u *url.URL) (inner string, ok bool) {
	var b []byte
	ours := strings.EqualFold(u.Scheme, k.scheme(r)) && (k.AnyHost || strings.EqualFold(u.Host, r.Host))
	if (u.Scheme != "" || u.Host != "") && !ours || u.User != nil || u.Opaque != "" {
		b = append(b, (&url.URL{Scheme: u.Scheme, Opaque: u.Opaque, User: u.User, Host: u.Host}).String()...)
		b = append(b, ' ')
	}
	if b, ok = k.appendQuery(appendPath(b, spelling(u)), u); len(b) == 0 { // the path was cut to nothing; no other path is a single space
		b = append(b, ' ')
	}
	return string(b), ok
}

// Selectors are the parts of a request that may select a variant of a response.
type Selectors struct {
	Header http.Header
	Host   string // net/http removes it from the header
	Inner  string // the URL that the handler sees; "" if it is the client's
	Query  string // what counts of the client's query, with its "?"; set if [Search] is used

	// AnyOrder ignores the order of languages of equal weight. RFC 9110 gives it no meaning, but handlers take the first.
	AnyOrder bool
}

// InnerURL stands for Selectors.Inner among the fields by which a response varies. No real field has this name.
const InnerURL = ":url"

const host = "Host"

// Lines returns the lines of a field of the request, and whether it is present. room holds a value that is not in the header.
func (s Selectors) Lines(name string, room *[1]string) (lines []string, present bool) {
	switch name {
	case InnerURL:
		room[0] = s.Inner
	case host:
		room[0] = s.Host
	default:
		lines, present = s.Header[name]
		return lines, present
	}
	return room[:], room[0] != ""
}
