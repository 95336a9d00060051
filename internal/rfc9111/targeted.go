package rfc9111

import (
	"net/http"
	"strconv"

	"github.com/dunglas/httpsfv"
)

// directives returns what a response says to this cache: the first of the targeted fields that is there and well formed,
// or else Cache-Control (RFC 9213, section 2.2). If targeted is true, neither Cache-Control nor Expires counts.
func (r Rules) directives(h http.Header) (d Directives, targeted bool) {
	for _, name := range r.Targeted {
		if d, ok := parseTargeted(h[http.CanonicalHeaderKey(name)]); ok {
			return d, true
		}
	}
	return ParseCacheControl(h), false
}

// parseTargeted reads a dictionary of RFC 8941, whose keys are lower case. An empty or malformed one counts as
// absent as a whole; a directive whose value has the wrong type is invalid, as in Cache-Control.
func parseTargeted(lines []string) (d Directives, ok bool) {
	if len(lines) == 0 {
		return d, false
	}
	dict, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil || len(dict.Names()) == 0 {
		return d, false
	}
	for _, name := range dict.Names() {
		member, _ := dict.Get(name)
		item, _ := member.(httpsfv.Item) // an inner list has no meaning here: its value is nil
		switch v := item.Value.(type) {
		case bool:
			if v {
				d.add(name, "", false, false)
			}
		case int64:
			d.add(name, strconv.FormatInt(v, 10), true, false)
		case string:
			if name != "no-cache" && name != "private" {
				v = "" // a number is not a string, whatever its letters say
			}
			d.add(name, v, true, true)
		default:
			d.add(name, "", true, false)
		}
	}
	return d, true
}
