package rfc9111

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// ParseDate returns the time of an HTTP date in one of its three forms (RFC 9110, section 5.6.7), letter case aside:
//
//	Sun, 06 Nov 1994 08:49:37 GMT
//	Sunday, 06-Nov-94 08:49:37 GMT
//	Sun Nov  6 08:49:37 1994
//
// Everything else is not a date: other zones, other separators, digits too few or too many. The day's name must be one,
// not the right one. Two digits of a year are of the century that is not more than 50 years past now.
func ParseDate(s string, now time.Time) (time.Time, bool) {
	s = trim(s)
	name, rest, comma := strings.Cut(s, ",")
	switch {
	case comma && len(name) == 3 && weekday(name, true):
		return parseIMF(rest)
	case comma && weekday(name, false):
		return parse850(rest, now)
	case !comma && len(s) == len("Sun Nov  6 08:49:37 1994") && weekday(s[:3], true):
		return parseAsctime(s[3:])
	}
	return time.Time{}, false
}

// FormatDate writes t as an IMF-fixdate.
func FormatDate(t time.Time) string { return t.UTC().Format(http.TimeFormat) }

// parseIMF reads " 06 Nov 1994 08:49:37 GMT".
func parseIMF(s string) (time.Time, bool) {
	if len(s) != len(" 06 Nov 1994 08:49:37 GMT") || s[0] != ' ' || s[3] != ' ' || s[7] != ' ' || s[12] != ' ' || !gmt(s[21:]) {
		return time.Time{}, false
	}
	return date(number(s[8:12]), s[4:7], number(s[1:3]), s[13:21])
}

// parse850 reads " 06-Nov-94 08:49:37 GMT".
func parse850(s string, now time.Time) (time.Time, bool) {
	if len(s) != len(" 06-Nov-94 08:49:37 GMT") || s[0] != ' ' || s[3] != '-' || s[7] != '-' || s[10] != ' ' || !gmt(s[19:]) {
		return time.Time{}, false
	}
	year := number(s[8:10])
	if year < 0 {
		return time.Time{}, false
	}
	year += now.Year() / 100 * 100
	t, ok := date(year, s[4:7], number(s[1:3]), s[11:19])
	if ok && t.After(now.AddDate(50, 0, 0)) {
		return date(year-100, s[4:7], number(s[1:3]), s[11:19])
	}
	return t, ok
}

// parseAsctime reads " Nov  6 08:49:37 1994".
func parseAsctime(s string) (time.Time, bool) {
	if s[0] != ' ' || s[4] != ' ' || s[7] != ' ' || s[16] != ' ' {
		return time.Time{}, false
	}
	day := number(s[5:7])
	if s[5] == ' ' {
		day = number(s[6:7])
	}
	return date(number(s[17:21]), s[1:4], day, s[8:16])
}

// date puts the parts together; clock is "08:49:37". A part that was not a number is negative.
func date(year int, month string, day int, clock string) (time.Time, bool) {
	if clock[2] != ':' || clock[5] != ':' {
		return time.Time{}, false
	}
	h, m, s := number(clock[:2]), number(clock[3:5]), number(clock[6:8])
	mon := slices.IndexFunc(months, func(name string) bool { return strings.EqualFold(name, month) })
	if year < 0 || mon < 0 || day < 1 || h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 60 { // 60: a leap second
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(mon+1), day, h, m, s, 0, time.UTC)
	if d := time.Date(year, time.Month(mon+1), day, 0, 0, 0, 0, time.UTC); d.Day() != day { // the 31st of April
		return time.Time{}, false
	}
	return t, true
}

var (
	days   = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	months = []string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
)

// weekday reports whether s is a day of the week, or its first three letters.
func weekday(s string, short bool) bool {
	for _, day := range days {
		if short {
			day = day[:3]
		}
		if strings.EqualFold(day, s) {
			return true
		}
	}
	return false
}

func gmt(s string) bool { return s[0] == ' ' && strings.EqualFold(s[1:], "GMT") }

// number returns what the digits s say, -1 if there is anything else in it.
func number(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}
