package rfc9111

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The three forms of an HTTP date after the day's name.
const (
	imfFixdate = " 02 Jan 2006 15:04:05 GMT"
	rfc850     = " 02-Jan-2006 15:04:05 GMT" // the year has two digits on the wire
	asctime    = " Jan _2 15:04:05 2006"     // also with a zero for the space
)

var days = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}

// ParseDate returns the time of an HTTP date in one of its three forms (RFC 9110, section 5.6.7), letter case aside:
//
//	Sun, 06 Nov 1994 08:49:37 GMT
//	Sunday, 06-Nov-94 08:49:37 GMT
//	Sun Nov  6 08:49:37 1994
//
// Everything else is not a date: other zones or separators, too few or too many digits. The day's name must be a valid one, but
// not the right one. A two-digit year is taken from the century that puts it at most 50 years after now.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	s = trim(s)
	name, rest, comma := strings.Cut(s, ",")
	if !comma && len(s) > 3 {
		name, rest = s[:3], s[3:]
	}
	short := func(day string) bool { return strings.EqualFold(day[:3], name) }
	long := func(day string) bool { return strings.EqualFold(day, name) }
	switch {
	case slices.ContainsFunc(days, short) && comma:
		return parseExactly(imfFixdate, rest)
	case slices.ContainsFunc(days, short):
		if len(rest) > 6 && rest[4:6] == " 0" {
			rest = rest[:4] + "  " + rest[6:]
		}
		return parseExactly(asctime, rest)
	case slices.ContainsFunc(days, long) && len(rest) == len(rfc850)-2:
		century := now.Year() / 100
		t, ok := parseExactly(rfc850, fmt.Sprintf("%s%02d%s", rest[:8], century, rest[8:]))
		if ok && t.After(now.AddDate(50, 0, 0)) {
			return parseExactly(rfc850, fmt.Sprintf("%s%02d%s", rest[:8], century-1, rest[8:]))
		}
		return t, ok
	}
	return time.Time{}, false
}

// parseExactly parses s if formatting the result gives s again, letter case aside. [time.Parse] alone also takes an hour of
// one digit, fractions of a second and more spaces, and refuses leap seconds.
func parseExactly(layout, s string) (time.Time, bool) {
	var leap time.Duration
	if i := strings.LastIndexByte(s, ':'); i >= 0 && strings.HasPrefix(s[i:], ":60") {
		s, leap = s[:i]+":59"+s[i+3:], time.Second
	}
	t, err := time.Parse(layout, strings.ToUpper(s))
	var room [32]byte
	if err != nil || len(s) != len(layout) || !strings.EqualFold(string(t.AppendFormat(room[:0], layout)), s) {
		return time.Time{}, false
	}
	return t.Add(leap), true
}

// FormatDate writes t as an IMF-fixdate.
func FormatDate(t time.Time) string { return t.UTC().Format(http.TimeFormat) }
