package engine

// glob reports whether pattern matches the whole of s, by Redis's rules: * any bytes, ? one byte, [a-z] one of these, [^a-z] one of the
// others, a backslash takes the next byte as it is. A class that is never closed ends with the pattern. Nothing but an empty pattern matches
// an empty s, not even "*" (util.c, stringmatchlen): KEYS and SCAN know "*" themselves.
//
// A star first takes nothing; where the rest then fails, the latest star takes a byte more. Earlier stars need no second try, because a
// later one could take what they would. So the work is at most len(pattern) * len(s).
func glob(pattern, s []byte) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	star, from := -1, 0 // the pattern after the latest star, and where in s it began to match
	p, i := 0, 0
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, from = p, i
			continue
		}
		if p < len(pattern) {
			if next, ok := globByte(pattern[p:], s[i]); ok {
				p, i = p+next, i+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		p, i = star, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// globByte matches b with what pattern begins with, which is no star, and returns the length of that.
func globByte(pattern []byte, b byte) (n int, ok bool) {
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return globClass(pattern, b)
	case '\\':
		if len(pattern) > 1 {
			return 2, pattern[1] == b
		}
	}
	return 1, pattern[0] == b
}

// globClass is globByte for a class.
func globClass(pattern []byte, b byte) (n int, ok bool) {
	i, not := 1, false
	if i < len(pattern) && pattern[i] == '^' {
		i, not = i+1, true
	}
	for i < len(pattern) && pattern[i] != ']' {
		switch rest := pattern[i:]; {
		case rest[0] == '\\' && len(rest) > 1:
			ok = ok || rest[1] == b
			i += 2
		case len(rest) > 2 && rest[1] == '-':
			ok = ok || min(rest[0], rest[2]) <= b && b <= max(rest[0], rest[2])
			i += 3
		default:
			ok = ok || rest[0] == b
			i++
		}
	}
	return min(i+1, len(pattern)), ok != not
}
