package rfc9111

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Stored returns what is stored of the header of a response that came at received: all of it, unknown fields too, minus
// what belongs to one connection (RFC 9111, section 3.1), what a qualified private or no-cache keeps from others, and Age,
// which is made anew. It has a Date, if need be of when it came (RFC 9110, section 6.6.1). Names that a handler has spelled in other
// letters stay so, but for those by which a message is framed. The argument is not changed.
func (r Rules) Stored(response http.Header, received time.Time) http.Header {
	h := Canonical(response)
	d, _ := r.directives(h)
	kept := make(map[string]bool, len(h)) // by canonical names
	for name := range h {
		kept[name] = !hop(name) && name != "Age" && !strings.HasPrefix(name, http.TrailerPrefix)
	}
	for name := range elements(h["Connection"]) {
		delete(kept, http.CanonicalHeaderKey(name))
	}
	for _, name := range d.Fields {
		delete(kept, name)
	}
	out := make(http.Header, len(response)+1)
	for spelled, lines := range response {
		name := http.CanonicalHeaderKey(spelled)
		if !kept[name] {
			continue
		}
		if frames(name) {
			spelled = name
		}
		out[spelled] = append(out[spelled], lines...)
	}
	if len(out["Date"]) == 0 {
		out["Date"] = []string{FormatDate(received)}
	}
	return out
}

// StoresTrailer reports whether a trailer of a response may be stored that may be stored itself: what its header may not have,
// its trailers may not either.
func (r Rules) StoresTrailer(response http.Header, name string) bool {
	d, _ := r.directives(Canonical(response))
	name = http.CanonicalHeaderKey(name)
	return !hop(name) && (name != "Set-Cookie" || r.StoreSetCookie) && !slices.Contains(d.Fields, name)
}

// hop reports whether a field, by its canonical name, is about one connection only.
func hop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
		return true
	}
	return strings.HasPrefix(name, "Proxy-")
}

// frames reports whether net/http, or a cache that answers with a part, looks at a field of a response by its canonical name.
func frames(name string) bool {
	return strings.HasPrefix(name, "Content-") || name == "Date" || name == "Cache-Status"
}

// Canonical returns h with the names of its fields in canonical form, h itself if they are: a handler may have put others
// into the map, and net/http sends them.
func Canonical(h http.Header) http.Header {
	for name := range h {
		if http.CanonicalHeaderKey(name) != name {
			out := make(http.Header, len(h))
			for name, lines := range h {
				key := http.CanonicalHeaderKey(name)
				out[key] = append(out[key], lines...)
			}
			return out
		}
	}
	return h
}
