package rfc9111

import (
	"net/http"
	"net/url"
	"slices"
)

// safe are the methods that only read (RFC 9110, section 9.2.1).
var safe = []string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}

// Invalidated returns the keys that a response voids (RFC 9111, section 4.4): none for a safe method or an error, else
// that of the target and those that Location and Content-Location name, if they are of the same origin.
func (k Keys) Invalidated(r *http.Request, status int, response http.Header) (keys []string) {
	if slices.Contains(safe, r.Method) || status < 200 || status > 399 {
		return nil
	}
	if key, ok := k.Key(r); ok {
		keys = append(keys, key)
	}
	h := Canonical(response)
	for _, name := range []string{"Location", "Content-Location"} {
		if key, ok := k.located(r, h[name]); ok && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// located returns the key of the URL that a field of a response names, if it has the same origin as the request: a host
// may not void another host's entries (section 4.4).
func (k Keys) located(r *http.Request, lines []string) (key string, ok bool) {
	if len(lines) != 1 {
		return "", false
	}
	ref, err := url.Parse(lines[0])
	if err != nil {
		return "", false
	}
	asked, _, ok := clientURL(r)
	if !ok {
		return "", false
	}
	base := &url.URL{Scheme: k.scheme(r), Host: r.Host, Path: asked.Path, RawPath: asked.RawPath, RawQuery: asked.RawQuery}
	u := base.ResolveReference(ref)
	if from := origin(base); from == "" || from != origin(u) {
		return "", false
	}
	return k.Of(u)
}

// origin is the scheme and host of a URL in their normal form, "" if it has none.
func origin(u *url.URL) string {
	key, _ := Keys{}.Of(&url.URL{Scheme: u.Scheme, Host: u.Host})
	return key
}
