package rfc9111

import (
	"maps"
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
			spelled, lines = name, h[name]
		}
		out[spelled] = slices.Clone(lines)
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
	return strings.HasPrefix(name, "Content-") || name == "Date" || name == "Cache-Status" || name == "Accept-Ranges"
}

// Canonical returns h with the names of its fields in canonical form, h itself if they are: a handler may have put others
// into the map, and net/http sends them. Lines of one field are in the order in which it does, by the names as they are spelled.
func Canonical(h http.Header) http.Header {
	for name := range h {
		if http.CanonicalHeaderKey(name) != name {
			out := make(http.Header, len(h))
			for _, name := range slices.Sorted(maps.Keys(h)) {
				key := http.CanonicalHeaderKey(name)
				out[key] = append(out[key], h[name]...)
			}
			return out
		}
	}
	return h
}

// Frame puts the fields of a response that frame it, or are about its connection, under their canonical names. net/http looks at no
// others, and would send fields of its own beside those of a handler that spells them in other letters.
func Frame(h http.Header) {
	canonical := Canonical(h)
	for name := range h { // all of it, if h is as it should be
		key := http.CanonicalHeaderKey(name)
		if key == name || !frames(key) && !hop(key) {
			continue
		}
		delete(h, name)
		h[key] = canonical[key]
	}
}
