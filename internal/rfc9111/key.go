package rfc9111

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Keys says which requests ask for the same resource. The zero value distinguishes what RFC 9110 does: scheme, host, path,
// and the query as it is.
type Keys struct {
	// AnyHost leaves the host out: the handler answers all of them alike.
	AnyHost bool

	// Scheme replaces the connection's scheme, as behind a proxy that ends TLS. "" uses the connection's.
	Scheme string

	// SortQuery makes the order of different query parameters not count.
	SortQuery bool

	// DropQuery are query parameters that do not count; a last "*" matches any rest ("utm_*").
	DropQuery []string

	// SearchApart leaves the client's query out of the handler's URL: it is compared elsewhere, by [Search].
	SearchApart bool
}

// Key returns the key of a request's resource: its URL, normalised as RFC 3986, section 6.2.2, does for letter case and
// percent-encoding, but dots in the path stay, encoded or not, since handlers may interpret them differently. Requests
// for different resources have different keys, whatever they contain. ok is false for a request that bypasses the cache: its
// host or path is malformed, its target says another scheme than the connection or names a user, or it is longer than MaxURL.
// The URL is RequestURI, which handlers around the cache do not change, or r.URL if that is empty.
//
// The method is not part of it: only answers to GET are stored, and they serve GET and HEAD.
func (k Keys) Key(r *http.Request) (key string, ok bool) {
	var room [256]byte
	b, _, ok := k.AppendKey(room[:0], r)
	return string(b), ok
}

// AppendKey appends what Key returns. inner is for [Selectors]: what the handler sees, where that is another URL than the client's.
func (k Keys) AppendKey(dst []byte, r *http.Request) (key []byte, inner string, ok bool) {
	u, same, ok := clientURL(r)
	if !ok {
		return dst, "", false
	}
	if key, ok = k.appendURL(dst, r, u); !ok || same {
		return key, "", ok
	}
	inside, apart := r.URL, ""
	if k.SearchApart && u.RawQuery == inside.RawQuery && u.ForceQuery == inside.ForceQuery {
		u, inside, apart = withoutQuery(u), withoutQuery(inside), " ?"
	}
	asked, ok := k.inner(r, u)
	seen, also := k.inner(r, inside)
	if !ok || !also || len(seen) > MaxURL {
		return dst, "", false
	}
	if seen == asked {
		return key, "", true
	}
	return key, seen + apart, true
}

func withoutQuery(u *url.URL) *url.URL {
	without := *u
	without.RawQuery, without.ForceQuery = "", false
	return &without
}

// appendURL appends the key of a request for u.
func (k Keys) appendURL(dst []byte, r *http.Request, u *url.URL) ([]byte, bool) {
	scheme := k.scheme(r)
	// A target in absolute form counts as the request of a client of this host and scheme, unless it has no path:
	// a handler may redirect that one, as ServeMux does.
	if u.Scheme != "" && (!strings.EqualFold(u.Scheme, scheme) || u.Host == "") || u.User != nil || u.Path == "" {
		return dst, false
	}
	return k.append(dst, scheme, r.Host, u)
}

// Of returns the key of an absolute URL: what Key returns for a request of it. Without a path it is that of "/".
func (k Keys) Of(u *url.URL) (key string, ok bool) {
	b, ok := k.append(nil, u.Scheme, u.Host, u)
	return string(b), ok
}

// Self reports whether the Content-Location of a response is its request's own URL.
func (k Keys) Self(r *http.Request, response http.Header) bool {
	own, ok := k.Key(r)
	at, also := k.located(r, response["Content-Location"])
	return ok && also && own == at
}

func (k Keys) scheme(r *http.Request) string {
	switch {
	case k.Scheme != "":
		return k.Scheme
	case r.TLS != nil:
		return "https"
	}
	return "http"
}

// MaxURL is the longest host, path and query, together, that have a key.
const MaxURL = 8 << 10

func (k Keys) append(dst []byte, scheme, host string, u *url.URL) ([]byte, bool) {
	start := len(dst)
	dst = appendLower(dst, scheme)
	switch scheme = string(dst[start:]); {
	case scheme != "http" && scheme != "https", u.Opaque != "",
		len(host)+max(len(u.Path), len(u.RawPath))+len(u.RawQuery) > MaxURL, !k.AnyHost && !validHost(host):
		return dst[:start], false
	}
	dst = append(dst, "://"...)
	if !k.AnyHost {
		dst = appendLower(dst, WithoutPort(scheme, host))
	}
	path := spelling(u)
	if path == "" {
		path = "/"
	}
	if path[0] != '/' { // "*", or the authority of a CONNECT
		return dst[:start], false
	}
	dst, ok := k.appendQuery(appendPath(dst, path), u)
	if !ok {
		return dst[:start], false
	}
	return dst, true
}

// spelling returns the path as the client spelled it, unless a handler has changed Path since.
func spelling(u *url.URL) string {
	if decoded, err := url.PathUnescape(u.RawPath); err == nil && decoded == u.Path {
		return u.RawPath
	}
	return u.EscapedPath()
}

// WithoutPort cuts off the scheme's default port.
func WithoutPort(scheme, host string) string {
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// validHost reports whether a host is well formed: a name or an address in brackets, and at most one port. So different hosts stay
// different without the default port, and no byte of a host can be mistaken for what follows it in the key.
func validHost(host string) bool {
	name := host
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		if end < 0 || strings.Trim(host[1:end], "0123456789abcdefABCDEF:.") != "" {
			return false
		}
		name = host[end+1:] // nothing but a port
		if name != "" && name[0] != ':' {
			return false
		}
	}
	name, port, ported := strings.Cut(name, ":")
	if ported && name == "" && host[0] == ':' { // without its port nothing would be left
		return false
	}
	for i := range len(name) {
		if c := name[i]; !tchar(c) && strings.IndexByte("(),;=", c) < 0 || strings.IndexByte("#^`|", c) >= 0 {
			return false
		}
	}
	return strings.Trim(port, "0123456789") == ""
}

// appendPath writes an escaped path with one spelling of what RFC 3986 takes for the same: unreserved octets as they are, what
// no path may hold as %XX. All others stay as they came, encoded or not, and so do dots.
func appendPath(dst []byte, path string) []byte {
	for i := 0; i < len(path); i++ {
		c := path[i]
		plain := unreserved(c) || strings.IndexByte("/!$&'()*+,;=:@[]", c) >= 0
		if c == '%' && i+2 < len(path) {
			c = unhex(path[i+1])<<4 | unhex(path[i+2])
			plain = unreserved(c) && c != '.'
			i += 2
		}
		if plain {
			dst = append(dst, c)
		} else {
			dst = appendHex(dst, c)
		}
	}
	return dst
}

const hexDigits = "0123456789ABCDEF"

func appendHex(dst []byte, c byte) []byte { return append(dst, '%', hexDigits[c>>4], hexDigits[c&15]) }

// appendQuery writes what counts of a query, with its "?" if there is one. It rejects a space or a control character, which no
// URL may contain.
func (k Keys) appendQuery(dst []byte, u *url.URL) ([]byte, bool) {
	query := u.RawQuery
	if strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return dst, false
	}
	if query != "" && (k.SortQuery || len(k.DropQuery) > 0) && !ambiguous(query) {
		params := slices.DeleteFunc(strings.Split(query, "&"), k.drops)
		if k.SortQuery { // parameters of one name keep their order: it may matter
			slices.SortStableFunc(params, func(a, b string) int { return strings.Compare(paramName(a), paramName(b)) })
		}
		query = strings.Join(params, "&")
	}
	if query != "" || u.ForceQuery {
		dst = append(dst, '?')
	}
	return append(dst, query...), true
}

func (k Keys) drops(param string) bool {
	name := paramName(param)
	return slices.ContainsFunc(k.DropQuery, func(pattern string) bool {
		if stem, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(name, stem)
		}
		return name == pattern
	})
}

// paramName returns the name of a parameter, decoded if possible.
func paramName(param string) string {
	name, _, _ := strings.Cut(param, "=")
	if s, err := url.QueryUnescape(name); err == nil {
		return s
	}
	return name
}

func appendLower(dst []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// unhex is the value of a hexadecimal digit.
func unhex(c byte) byte {
	if c >= 'A' {
		return c | 0x20 - 'a' + 10
	}
	return c - '0'
}
