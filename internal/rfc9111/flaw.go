package rfc9111

import (
	"net/http"
	"strings"
)

// Flaw says what is wrong with the header of a response that is not stored for this reason, in words for who can mend it; ""
// if it is as it should be, and only not for a cache. A sender may say so by Expires: 0.
func (r Rules) Flaw(reason Reason, x Exchange) (what string) {
	h := Canonical(x.Header)
	say := func(flaw string) {
		if what == "" {
			what = flaw
		}
	}
	date := func(field string, or ...string) {
		lines := h[field]
		for _, fine := range or {
			if len(lines) == 1 && trim(lines[0]) == fine {
				return
			}
		}
		if len(lines) == 1 {
			if _, ok := ParseDate(lines[0], x.Received); !ok {
				say(field + " is not a date")
			}
		} else if len(lines) > 1 {
			say(field + " has several lines")
		}
	}
	switch reason {
	case VaryAny:
		names := 0
		elements(h["Vary"], func(name string) {
			if names++; name != "*" && !token(name) {
				say("Vary has what is not the name of a field")
			} else if name == "*" {
				names = -1 << 31
			}
		})
		if names > maxVary {
			say("Vary has more fields than a cache tells apart")
		}
	case NoFreshness, Expired:
		for _, name := range r.Targeted {
			if _, ok := parseTargeted(h[http.CanonicalHeaderKey(name)]); !ok && h[http.CanonicalHeaderKey(name)] != nil {
				say(name + " is not a dictionary")
			}
		}
		elements(h["Cache-Control"], func(e string) {
			name, arg, _ := strings.Cut(e, "=")
			if text, ok := unquote(arg); ok {
				arg = text
			}
			switch _, number := delta(arg); strings.ToLower(trim(name)) {
			case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error":
				if !number || trim(name) != name {
					say("Cache-Control has a number that is none")
				}
			default:
				if !token(name) {
					say("Cache-Control has what is not a directive")
				}
			}
		})
		date("Expires", "0", "-1")
		date("Date")
		date("Last-Modified")
		if len(h["Etag"]) > 1 {
			say("Etag has several lines")
		}
		if ageOf(h).Seconds() >= maxDelta {
			say("Age is beyond all measure")
		}
	}
	return what
}
