package rfc9111

import "strings"

// The small grammar that header fields share (RFC 9110, section 5.6).

// trim cuts optional whitespace off both ends.
func trim(s string) string { return strings.Trim(s, " \t") }

// elements calls yield with each element of a comma-separated list, over all lines of a field, trimmed; empty ones are
// skipped, commas in quoted strings do not separate. A quote that never closes is an ordinary character, so that nothing
// hides behind it.
func elements(lines []string, yield func(string)) {
	for _, line := range lines {
		for line != "" {
			var e string
			e, line = element(line)
			if e = trim(e); e != "" {
				yield(e)
			}
		}
	}
}

// element cuts the first element off a list.
func element(s string) (first, rest string) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ',':
			return s[:i], s[i+1:]
		case '"':
			if n := quoted(s[i:]); n > 0 {
				i += n - 1
			}
		}
	}
	return s, ""
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

// token reports whether s is one: a name of a field, a method, a directive.
func token(s string) bool {
	for i := range len(s) {
		if !tchar(s[i]) {
			return false
		}
	}
	return s != ""
}

func tchar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
