package ttlaudit

import (
	"bytes"
	"strings"
)

// pattern is a parsed pattern of a plan: split into parts by the separators, and the parts into pieces by their stars. A star never extends
// beyond its part, so the parts of a key match those of the pattern one by one. Within a part, the first and the last piece stand at the
// ends, and each other piece is taken where it first occurs, which leaves the most for the pieces after it. So no alternative is ever
// tried, and matching a key takes linear time.
type pattern struct {
	parts []shaped
	rest  bool // it ends with "**"
}

type shaped struct {
	pieces []string // one more than there are stars
	group  int      // the separator that ends it, numbered as in cut
}

func readPattern(text string) (p pattern) {
	var literal bytes.Buffer
	var now shaped
	take := func() {
		now.pieces = append(now.pieces, literal.String())
		literal.Reset()
	}
	for ; text != ""; text = text[1:] {
		switch {
		case text == "**":
			p.rest = true
			text = text[1:]
			continue
		case text[0] == '*':
			take()
			continue
		case text[0] == '\\' && len(text) > 1:
			text = text[1:]
		}
		if group := 1 + strings.IndexByte(separators, text[0]); group > 0 {
			take()
			now.group = group
			p.parts = append(p.parts, now)
			now = shaped{}
			continue
		}
		literal.WriteByte(text[0])
	}
	take()
	p.parts = append(p.parts, now)
	return p
}

// covers reports whether p fits all keys that the pattern narrower fits: true if p fits narrower with its stars replaced by a character
// that occurs in no text.
func (p pattern) covers(narrower string) bool {
	const some = "\x00"
	var key strings.Builder
	for text := narrower; text != ""; text = text[1:] {
		switch {
		case text == "**":
			key.WriteString(some + separators[:1] + some)
			return p.fits(key.String())
		case text[0] == '*':
			key.WriteString(some)
			continue
		case text[0] == '\\' && len(text) > 1:
			text = text[1:]
		}
		key.WriteByte(text[0])
	}
	return p.fits(key.String())
}

// fits reports whether key matches the pattern.
func (p pattern) fits(key string) bool {
	for i, s := range p.parts {
		part, group, after := cut(key)
		if i == len(p.parts)-1 && p.rest {
			n, ok := s.begins(part)
			return ok && n < len(key) // ** stands for at least one byte
		}
		if group != s.group || !s.is(part) {
			return false
		}
		key = after
	}
	return true
}

// begins reports whether a part begins with what s describes, and the smallest number of bytes that takes.
func (s shaped) begins(part string) (n int, ok bool) {
	if n = len(s.pieces[0]); !strings.HasPrefix(part, s.pieces[0]) {
		return 0, false
	}
	for _, piece := range s.pieces[1:] {
		at := strings.Index(part[n:], piece)
		if at < 0 {
			return 0, false
		}
		n += at + len(piece)
	}
	return n, true
}

// is reports whether s describes the whole part.
func (s shaped) is(part string) bool {
	last := s.pieces[len(s.pieces)-1]
	if len(s.pieces) == 1 {
		return part == last
	}
	n, ok := shaped{pieces: s.pieces[:len(s.pieces)-1]}.begins(part)
	return ok && len(part)-n >= len(last) && strings.HasSuffix(part, last)
}
