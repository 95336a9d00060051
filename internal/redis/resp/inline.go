package resp

import (
	"strconv"
	"strings"
)

// splitWords appends the words of an inline command to args, unquoting them in place: a word is never longer than its quoted form. It reports
// false for a quote that is not closed, or that is followed by anything but a blank.
//
// The rules are those of redis-cli and redis.conf, sds.c: sdssplitargs. Blanks separate words. "..." may contain \xHH, \n \r \t \b \a, and a
// backslash before any other byte stands for that byte; '...' knows only \'. A quote may open within a word, and a closing quote ends the
// word.
func splitWords(args [][]byte, line []byte) ([][]byte, bool) {
	for i := 0; ; {
		for i < len(line) && blank(line[i]) {
			i++
		}
		if i == len(line) {
			return args, true
		}
		from := i
		to := from // the word so far is line[from:to]
		for open := true; open && i < len(line); i++ {
			switch c := line[i]; c {
			case ' ', '\t', '\r':
				open = false
			case '"', '\'':
				n, next := unquote(line[to:], line[i+1:], c)
				if next < 0 {
					return args, false
				}
				to, i = to+n, i+next
				open = false
			default:
				line[to] = c
				to++
			}
		}
		args = append(args, line[from:to:to])
	}
}

// unquote writes what comes before the closing quote in src to dst. It returns how much that was, and the position of the closing quote
// relative to the opening one, -1 for an error. dst may overlap src if it begins before it.
func unquote(dst, src []byte, quote byte) (n, closing int) {
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case c == quote:
			if i+1 < len(src) && !blank(src[i+1]) {
				return 0, -1
			}
			return n, i + 1
		case c == '\\' && quote == '"' && i+1 < len(src):
			var more int
			c, more = unescape(src[i+1:])
			i += more
		case c == '\\' && quote == '\'' && i+1 < len(src) && src[i+1] == '\'':
			i++
			c = '\''
		}
		dst[n] = c
		n++
	}
	return 0, -1
}

// unescape returns the byte that an escape after a backslash stands for, and the escape's length in s.
func unescape(s []byte) (c byte, n int) {
	if len(s) >= 3 && s[0] == 'x' {
		if c, err := strconv.ParseUint(string(s[1:3]), 16, 8); err == nil {
			return byte(c), 3
		}
	}
	if i := strings.IndexByte("nrtba", s[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return s[0], 1
}

// blank is C's isspace.
func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
