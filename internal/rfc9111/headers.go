package rfc9111

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Stored returns the part of a header to store for a response that came at received: all fields, unknown ones included, except those
// of a single connection (RFC 9111, section 3.1), those that a qualified private or no-cache withholds, and Age, which each hit computes
// anew. A missing Date is set to received (RFC 9110, section 6.6.1). Names keep the handler's spelling, except those that frame a
// message. The argument is not changed.
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

// StoresTrailer reports whether a trailer of a storable response may be stored: a field that is not stored from the header is not
// stored from the trailers either.
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

// frames reports whether net/http, or a cache that answers with a part, reads this response field by its canonical name.
func frames(name string) bool {
	return strings.HasPrefix(name, "Content-") || name == "Date" || name == "Cache-Status" || name == "Accept-Ranges"
}

// Canonical returns h with canonical field names, and h itself if they are: a handler may have put other spellings into the map,
// and net/http sends them. The lines of a field have the order in which net/http sends them: sorted by the spelling of their names.
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

// Frame moves the fields that frame a response, or are about its connection, to their canonical names. net/http reads only
// those, and would add fields of its own beside a handler's other spelling.
func Frame(h http.Header) {
	canonical := Canonical(h)
	for name := range h { // covers everything if all names are canonical
		key := http.CanonicalHeaderKey(name)
		if key == name || !frames(key) && !hop(key) {
			continue
		}
		delete(h, name)
		h[key] = canonical[key]
	}
}
