package rfc9111

import (
	"net/http"
	"time"
)

// lifetime is the freshness_lifetime of RFC 9111, section 4.2.1: s-maxage, or max-age, or Expires; explicit says that one
// of them was there, be it invalid, which is 0. expires says whether Expires counts.
func lifetime(d Directives, h http.Header, expires bool, received time.Time) (life time.Duration, explicit bool) {
	switch lines := h["Expires"]; {
	case d.SMaxAge.Given:
		return d.SMaxAge.Duration(), true
	case d.MaxAge.Given:
		return d.MaxAge.Duration(), true
	case !expires || len(lines) == 0:
		return 0, false
	case len(lines) > 1: // which one?
		return 0, true
	default:
		t, ok := ParseDate(lines[0], received)
		if !ok { // "0" is in the past: section 5.3
			return 0, true
		}
		seconds := t.Unix() - dateOf(h, received).Unix()
		return time.Duration(min(max(0, seconds), maxDelta)) * time.Second, true
	}
}

// guess is the heuristic of section 4.2.2: a tenth of the time that the response had not been modified for.
func guess(h http.Header, received time.Time) time.Duration {
	modified, ok := lastModified(h, received)
	if !ok {
		return 0
	}
	seconds := dateOf(h, received).Unix() - modified.Unix()
	return time.Duration(min(max(0, seconds), maxDelta)) * time.Second / 10
}

// lastModified returns the one Last-Modified that there is.
func lastModified(h http.Header, now time.Time) (time.Time, bool) {
	if lines := h["Last-Modified"]; len(lines) == 1 {
		return ParseDate(lines[0], now)
	}
	return time.Time{}, false
}

// heuristic reports whether a status may be stored and reused without explicit freshness (RFC 9110, section 15.1), but for
// 206, of which a cache that does not combine parts has no use.
func heuristic(status int) bool {
	switch status {
	case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501:
		return true
	}
	return false
}
