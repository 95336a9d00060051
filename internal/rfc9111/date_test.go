package rfc9111_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// now is when all tests play: a Saturday.
var now = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)

// header makes a header of lines "Name: value".
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		for i := range line {
			if line[i] == ':' {
				h.Add(line[:i], line[i+2:])
				break
			}
		}
	}
	return h
}

// at is an IMF-fixdate so long after now.
func at(d time.Duration) string { return rfc9111.FormatDate(now.Add(d)) }

// RFC 9110, section 5.6.7.
func TestParseDate(t *testing.T) {
	want := time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC)
	later := time.Date(2050, 8, 18, 2, 1, 18, 0, time.UTC)
	for _, x := range []struct {
		name, text string
		want       time.Time // zero: not a date
	}{
		{"IMF-fixdate", "Sun, 06 Nov 1994 08:49:37 GMT", want},
		{"RFC 850", "Sunday, 06-Nov-94 08:49:37 GMT", want},
		{"asctime, a day of one digit", "Sun Nov  6 08:49:37 1994", want},
		{"asctime, a day with a zero", "Sun Nov 06 08:49:37 1994", want},
		{"asctime, a day of two digits", "Sun Nov 16 08:49:37 1994", want.AddDate(0, 0, 10)},
		{"whitespace about it", " \tSun, 06 Nov 1994 08:49:37 GMT ", want},
		{"the case of the day", "THU, 18 Aug 2050 02:01:18 GMT", later},
		{"the case of the month", "Thu, 18 AUG 2050 02:01:18 GMT", later},
		{"the case of the zone", "Thu, 18 Aug 2050 02:01:18 gMT", later},
		{"the wrong day of the week", "Mon, 18 Aug 2050 02:01:18 GMT", later},
		{"RFC 850, less than 50 years ahead", "Thursday, 18-Aug-50 02:01:18 GMT", later},
		{"RFC 850, more than 50 years ahead", "Thursday, 18-Aug-77 02:01:18 GMT", time.Date(1977, 8, 18, 2, 1, 18, 0, time.UTC)},
		{"past 32 bits", "Tue, 19 Jan 2038 14:14:08 GMT", time.Date(2038, 1, 19, 14, 14, 8, 0, time.UTC)},
		{"far ahead", "Sun, 21 Nov 2286 04:46:39 GMT", time.Date(2286, 11, 21, 4, 46, 39, 0, time.UTC)},
		{"a leap second", "Sat, 31 Dec 2016 23:59:60 GMT", time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"the 29th of February", "Sat, 29 Feb 2020 00:00:00 GMT", time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC)},

		{"nothing", "", time.Time{}},
		{"0", "0", time.Time{}},
		{"-1", "-1", time.Time{}},
		{"a word", "foo", time.Time{}},
		{"UTC", "Thu, 18 Aug 2050 02:01:18 UTC", time.Time{}},
		{"another zone", "Thu, 18 Aug 2050 02:01:18 AEST", time.Time{}},
		{"an offset", "Thu, 18 Aug 2050 02:01:18 +0000", time.Time{}},
		{"no zone", "Thu, 18 Aug 2050 02:01:18", time.Time{}},
		{"two digits of a year", "Thu, 18 Aug 50 02:01:18 GMT", time.Time{}},
		{"no comma", "Thu 18 Aug 2050 02:01:18 GMT", time.Time{}},
		{"two spaces", "Thu, 18  Aug  2050 02:01:18 GMT", time.Time{}},
		{"dashes", "Thu, 18-Aug-2050 02:01:18 GMT", time.Time{}},
		{"a short day in RFC 850", "Thu, 18-Aug-50 02:01:18 GMT", time.Time{}},
		{"a long day in IMF", "Thursday, 18 Aug 2050 02:01:18 GMT", time.Time{}},
		{"periods", "Thu, 18 Aug 2050 02.01.18 GMT", time.Time{}},
		{"an hour of one digit", "Thu, 18 Aug 2050 2:01:18 GMT", time.Time{}},
		{"a day of one digit", "Thu, 8 Aug 2050 02:01:18 GMT", time.Time{}},
		{"no such day of the week", "Foo, 18 Aug 2050 02:01:18 GMT", time.Time{}},
		{"no such month", "Thu, 18 Foo 2050 02:01:18 GMT", time.Time{}},
		{"no such day", "Thu, 31 Apr 2050 02:01:18 GMT", time.Time{}},
		{"day 0", "Thu, 00 Apr 2050 02:01:18 GMT", time.Time{}},
		{"hour 24", "Thu, 18 Aug 2050 24:00:00 GMT", time.Time{}},
		{"minute 60", "Thu, 18 Aug 2050 02:60:00 GMT", time.Time{}},
		{"second 61", "Thu, 18 Aug 2050 02:00:61 GMT", time.Time{}},
		{"a sign in the year", "Thu, 18 Aug +050 02:01:18 GMT", time.Time{}},
		{"more behind it", "Thu, 18 Aug 2050 02:01:18 GMT GMT", time.Time{}},
		{"two dates", "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT", time.Time{}},
		{"asctime, one space", "Sun Nov 6 08:49:37 1994", time.Time{}},
		{"asctime, a zone", "Sun Nov  6 08:49:37 GMT 1994", time.Time{}},
		{"RFC 3339", "1994-11-06T08:49:37Z", time.Time{}},
	} {
		got, ok := rfc9111.ParseDate(x.text, now)
		if ok == x.want.IsZero() || ok && !got.Equal(x.want) {
			t.Errorf("%s: %q is %v %v, want %v", x.name, x.text, got, ok, x.want)
		}
	}
}

func FuzzParseDate(f *testing.F) {
	for _, s := range []string{"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "", ",", "Sun,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := rfc9111.ParseDate(s, now)
		if !ok {
			return
		}
		if _, err := http.ParseTime(rfc9111.FormatDate(d)); err != nil && d.Year() > 0 {
			t.Errorf("%q is %v, which nobody reads: %v", s, d, err)
		}
		if again, ok := rfc9111.ParseDate(rfc9111.FormatDate(d), now); !ok || !again.Equal(d) {
			t.Errorf("%q is %v, written and read %v", s, d, again)
		}
	})
}
