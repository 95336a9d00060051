package resp

// splitWords appends the words of an inline command to args, unquoting them in place: a word is never longer than what it was
// written as. It reports false for a quote that is not closed, or that something other than a blank follows.
//
// The rules are those of redis-cli and redis.conf, sds.c: sdssplitargs. Blanks separate words. "..." may hold \xHH, \n \r \t
// \b \a, and a backslash before anything else stands for that byte; '...' knows only \'. A quote may open within a word, and a
// closed quote ends it.
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

// unquote writes what stands before the closing quote in src to dst and returns how much that was and the place of the closing quote
// relative to the opening one, or -1 for an error. Dst may lie over src, before it.
func unquote(dst, src []byte, quote byte) (n, closing int) {
	for i := 0; i < len(src); i++ {
		c := src[i]
		switch {
		case c == quote:
			if i+1 < len(src) && !blank(src[i+1]) {
				return 0, -1
			}
			return n, i + 1
		case c == '\\' && quote == '"' && i+3 < len(src) && src[i+1] == 'x' && hex(src[i+2]) >= 0 && hex(src[i+3]) >= 0:
			c = byte(hex(src[i+2])<<4 | hex(src[i+3]))
			i += 3
		case c == '\\' && quote == '"' && i+1 < len(src):
			i++
			c = unescape(src[i])
		case c == '\\' && quote == '\'' && i+1 < len(src) && src[i+1] == '\'':
			i++
			c = '\''
		}
		dst[n] = c
		n++
	}
	return 0, -1
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func hex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// blank is C's isspace.
func blank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }
