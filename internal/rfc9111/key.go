package rfc9111

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
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

// Key returns the key of a request's resource: its URL, normalised as RFC 3986, section 6.2.2, does for letter case and
// percent-encoding, but dots in the path are left to the handler, who may see them otherwise. Requests for different
// resources have different keys, whatever they hold. ok is false for a request whose host or path is not one, and which
// a cache leaves alone.
//
// The method is not in it: only what a GET gets is stored, for GET and HEAD.
func (k Keys) Key(r *http.Request) (key string, ok bool) {
	var room [256]byte
	b, ok := k.AppendKey(room[:0], r)
	return string(b), ok
}

// AppendKey appends what Key returns.
func (k Keys) AppendKey(dst []byte, r *http.Request) ([]byte, bool) {
	return k.append(dst, k.scheme(r), r.Host, r.URL)
}

// Of returns the key of an absolute URL: what Key returns for a request of it.
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

func (k Keys) append(dst []byte, scheme, host string, u *url.URL) ([]byte, bool) {
	start := len(dst)
	dst = appendLower(dst, scheme)
	if scheme = string(dst[start:]); scheme != "http" && scheme != "https" {
		return dst[:start], false
	}
	dst = append(dst, "://"...)
	if !k.AnyHost {
		before := len(dst)
		dst = appendLower(dst, withoutPort(scheme, host))
		if !validHost(dst[before:]) {
			return dst[:start], false
		}
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if path[0] != '/' { // "*", or the authority of a CONNECT
		return dst[:start], false
	}
	dst = appendPath(dst, path)
	return k.appendQuery(dst, u), true
}

// withoutPort cuts the port that the scheme implies.
func withoutPort(scheme, host string) string {
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return strings.TrimSuffix(host, port)
}

// validHost reports whether a host, with or without a port, can be one: none of its bytes could be taken for what follows.
func validHost(host []byte) bool {
	for _, c := range host {
		if !tchar(c) && strings.IndexByte("()*,;=:[]", c) < 0 || c == '#' || c == '^' || c == '`' || c == '|' {
			return false
		}
	}
	return true
}

// appendPath writes an escaped path with the one spelling of each octet: unreserved ones as they are, others as %XX.
func appendPath(dst []byte, path string) []byte {
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c != '%' || i+2 >= len(path) {
			dst = append(dst, c)
			continue
		}
		hi, lo := upper(path[i+1]), upper(path[i+2])
		i += 2
		if c := unhex(hi)<<4 | unhex(lo); unreserved(c) {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', hi, lo)
		}
	}
	return dst
}

// appendQuery writes what counts of a query, with its "?" if there is one. What no URL may hold is escaped: a key has no
// space and no control character.
func (k Keys) appendQuery(dst []byte, u *url.URL) []byte {
	query := u.RawQuery
	if query != "" && (k.SortQuery || len(k.DropQuery) > 0) {
		params := slices.DeleteFunc(strings.Split(query, "&"), k.drops)
		if k.SortQuery { // those of one name keep their order: it may count
			slices.SortStableFunc(params, func(a, b string) int { return strings.Compare(paramName(a), paramName(b)) })
		}
		query = strings.Join(params, "&")
		if query == "" {
			return dst
		}
	}
	if query != "" || u.ForceQuery {
		dst = append(dst, '?')
	}
	for i := range len(query) {
		if c := query[i]; c <= ' ' || c == 0x7f {
			dst = append(dst, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return dst
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

// paramName is the name of a parameter, decoded if it can be.
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

func upper(c byte) byte {
	if 'a' <= c && c <= 'f' {
		c -= 'a' - 'A'
	}
	return c
}

func unhex(c byte) byte {
	if c >= 'A' {
		return c - 'A' + 10
	}
	return c - '0'
}
