package script

import "strings"

// Patterns of Lua 5.1, as described in its manual (5.4.1). Each attempt to match an item counts as work, so a pattern that takes forever can
// be killed like any script; the nesting of attempts is limited.

const (
	maxCaptures = 32
	maxTries    = 100_000 // nested attempts
)

// matcher matches one pattern against one text.
type matcher struct {
	text, pattern string
	captures      []capture
	tries         int
	steps         int
	work          func(n int)
	raise         func(why string)
}

// capture is the match of a pair of parentheses. A length of -1: still open; -2: a position, not a text.
type capture struct{ at, length int }

const (
	openCapture = -1
	positional  = -2
)

// match matches the pattern from p on against the text from s on, and returns the end of the match or -1.
func (m *matcher) match(s, p int) int {
	if m.tries++; m.tries > maxTries {
		m.raise("pattern too complex")
	}
	defer func() { m.tries-- }()
	for {
		m.step(1)
		if p == len(m.pattern) {
			return s
		}
		switch c := m.pattern[p]; {
		case c == '(':
			if strings.HasPrefix(m.pattern[p:], "()") {
				return m.open(s, p+2, positional)
			}
			return m.open(s, p+1, openCapture)
		case c == ')':
			return m.close(s, p+1)
		case c == '$' && p+1 == len(m.pattern):
			if s == len(m.text) {
				return s
			}
			return -1
		case c == '%' && p+1 < len(m.pattern) && m.pattern[p+1] == 'b':
			if s = m.balance(s, p+2); s < 0 {
				return -1
			}
			p += 4
			continue
		case c == '%' && p+1 < len(m.pattern) && m.pattern[p+1] == 'f':
			p += 2
			if p >= len(m.pattern) || m.pattern[p] != '[' {
				m.raise("missing '[' after '%f' in pattern")
			}
			end := m.itemEnd(p)
			before, after := byte(0), byte(0)
			if s > 0 {
				before = m.text[s-1]
			}
			if s < len(m.text) {
				after = m.text[s]
			}
			if m.inClass(before, p, end) || !m.inClass(after, p, end) {
				return -1
			}
			p = end
			continue
		case c == '%' && p+1 < len(m.pattern) && '0' <= m.pattern[p+1] && m.pattern[p+1] <= '9':
			before := m.captured(m.pattern[p+1])
			if !strings.HasPrefix(m.text[s:], before) {
				return -1
			}
			m.step(len(before))
			s, p = s+len(before), p+2
			continue
		}
		end := m.itemEnd(p)
		suffix := byte(0)
		if end < len(m.pattern) {
			suffix = m.pattern[end]
		}
		switch suffix {
		case '?':
			if m.takes(s, p, end) {
				if at := m.match(s+1, end+1); at >= 0 {
					return at
				}
			}
			p = end + 1
		case '*', '+':
			return m.longest(s, p, end, suffix == '+')
		case '-':
			return m.shortest(s, p, end)
		default:
			if !m.takes(s, p, end) {
				return -1
			}
			s, p = s+1, end
		}
	}
}

// step counts work.
func (m *matcher) step(n int) {
	if m.steps += n; m.steps >= 1000 {
		m.work(m.steps)
		m.steps = 0
	}
}

// longest tries the most repetitions of an item first, then fewer.
func (m *matcher) longest(s, p, end int, atLeastOne bool) int {
	n := 0
	for m.takes(s+n, p, end) {
		n++
	}
	m.step(n)
	least := 0
	if atLeastOne {
		least = 1
	}
	for ; n >= least; n-- {
		if at := m.match(s+n, end+1); at >= 0 {
			return at
		}
	}
	return -1
}

// shortest tries the fewest repetitions of an item first.
func (m *matcher) shortest(s, p, end int) int {
	for {
		if at := m.match(s, end+1); at >= 0 {
			return at
		}
		if !m.takes(s, p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) open(s, p, length int) int {
	if len(m.captures) == maxCaptures {
		m.raise("too many captures")
	}
	n := len(m.captures)
	m.captures = append(m.captures, capture{s, length})
	at := m.match(s, p)
	if at < 0 {
		m.captures = m.captures[:n]
	}
	return at
}

func (m *matcher) close(s, p int) int {
	for n := len(m.captures) - 1; n >= 0; n-- {
		c := &m.captures[n]
		if c.length != openCapture {
			continue
		}
		c.length = s - c.at
		at := m.match(s, p)
		if at < 0 {
			m.captures[n].length = openCapture
		}
		return at
	}
	m.raise("invalid pattern capture")
	return -1
}

// captured returns the text of the capture with this digit.
func (m *matcher) captured(digit byte) string {
	n := int(digit - '1')
	if digit == '0' || n >= len(m.captures) || m.captures[n].length < 0 {
		m.raise("invalid capture index")
	}
	c := m.captures[n]
	return m.text[c.at : c.at+c.length]
}

// balance matches a text that begins with one byte and ends with the closing one that balances it: %b().
func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pattern) {
		m.raise("unbalanced pattern")
	}
	if s >= len(m.text) || m.text[s] != m.pattern[p] {
		return -1
	}
	open := 1
	for i := s + 1; i < len(m.text); i++ {
		m.step(1)
		switch m.text[i] {
		case m.pattern[p+1]:
			if open--; open == 0 {
				return i + 1
			}
		case m.pattern[p]:
			open++
		}
	}
	return -1
}

// itemEnd returns the end of the item that begins at p: a byte, a class %a, a set [...].
func (m *matcher) itemEnd(p int) int {
	c := m.pattern[p]
	p++
	switch {
	case c == '%' && p >= len(m.pattern):
		m.raise("malformed pattern (ends with '%')")
	case c == '%':
		return p + 1
	case c != '[':
		return p
	}
	if p < len(m.pattern) && m.pattern[p] == '^' {
		p++
	}
	for first := true; ; first = false {
		if p >= len(m.pattern) {
			m.raise("malformed pattern (missing ']')")
		}
		c := m.pattern[p]
		p++
		switch {
		case c == ']' && !first:
			return p
		case c == '%':
			p++
		}
	}
}

// takes reports whether the item from p to end matches the byte at s.
func (m *matcher) takes(s, p, end int) bool {
	if s >= len(m.text) {
		return false
	}
	b := m.text[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return classTakes(m.pattern[p+1], b)
	case '[':
		m.step((end - p) / 8)
		return m.inClass(b, p, end)
	}
	return m.pattern[p] == b
}

// inClass reports whether b is in the set from p to end.
func (m *matcher) inClass(b byte, p, end int) bool {
	set := m.pattern[p+1 : end-1]
	in := true
	if strings.HasPrefix(set, "^") {
		set, in = set[1:], false
	}
	for i := 0; i < len(set); i++ {
		switch {
		case set[i] == '%' && i+1 < len(set):
			i++
			if classTakes(set[i], b) {
				return in
			}
		case i+2 < len(set) && set[i+1] == '-':
			if set[i] <= b && b <= set[i+2] {
				return in
			}
			i += 2
		case set[i] == b:
			return in
		}
	}
	return !in
}

// classTakes reports whether the class %c contains b; an upper-case class is the complement.
func classTakes(class, b byte) bool {
	var in bool
	letter := 'a' <= b|0x20 && b|0x20 <= 'z'
	digit := '0' <= b && b <= '9'
	switch lowerByte(class) {
	case 'a':
		in = letter
	case 'c':
		in = b < ' ' || b == 0x7f
	case 'd':
		in = digit
	case 'l':
		in = 'a' <= b && b <= 'z'
	case 'p':
		in = '!' <= b && b <= '~' && !letter && !digit
	case 's':
		in = b == ' ' || '\t' <= b && b <= '\r'
	case 'u':
		in = 'A' <= b && b <= 'Z'
	case 'w':
		in = letter || digit
	case 'x':
		in = digit || 'a' <= b|0x20 && b|0x20 <= 'f'
	case 'z':
		in = b == 0
	default:
		return class == b
	}
	return in != ('A' <= class && class <= 'Z')
}
