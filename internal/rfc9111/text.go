package rfc9111

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// The small grammar that header fields share (RFC 9110, section 5.6).

// trim cuts optional whitespace off both ends.
func trim(s string) string { return strings.Trim(s, " \t") }

// elements yields the trimmed elements of a comma-separated list over all lines of a field. Empty ones are skipped, and commas in
// quoted strings do not separate. A quote that never closes is an ordinary character, so that nothing hides behind it.
func elements(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range lines {
			quotes := true
			for line != "" {
				var e string
				e, line, quotes = element(line, quotes)
				if e = trim(e); e != "" && !yield(e) {
					return
				}
			}
		}
	}
}

// element cuts the first element off a list. quotes says whether a quote may still close: after one that does not, no later quote of
// the line can, as they were all escaped in it. This avoids quadratic time on a line of quotes.
func element(s string, quotes bool) (first, rest string, still bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ',':
			return s[:i], s[i+1:], quotes
		case '"':
			if quotes {
				n := quoted(s[i:])
				quotes = n > 0
				i += max(n-1, 0)
			}
		}
	}
	return s, "", quotes
}

// quoted returns the length of the quoted string that s begins with, 0 if it never closes.
func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// unquote returns what a quoted string says; ok is false if s is not exactly one.
func unquote(s string) (text string, ok bool) {
	if len(s) < 2 || s[0] != '"' || quoted(s) != len(s) {
		return "", false
	}
	s = s[1 : len(s)-1]
	if !strings.Contains(s, `\`) {
		return s, true
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), true
}

// digits parses s, capped at most; ok is false if s is not all digits.
func digits(s string, most int64) (n int64, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = min(n*10+int64(s[i]-'0'), most)
	}
	return n, s != ""
}

// only returns a field's line, or "" if it has none or several.
func only(lines []string) string {
	if len(lines) != 1 {
		return ""
	}
	return lines[0]
}

// token reports whether s is a token, such as the name of a field, a method or a directive.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c >= utf8.RuneSelf || !tchar(byte(c)) })
}

func tchar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
