// Package glob matches names with Redis's patterns, as KEYS, SCAN and PSUBSCRIBE take them, in time that an adversary cannot stretch.
//
//	p := glob.Compile([]byte("user:*:[0-9]?"))
//	p.Match([]byte("user:ada:42"))
//
// The rules: * any bytes, ? one byte, [a-z] one of these, [^a-z] one of the others, a backslash takes the next byte as it is. A class that is
// never closed ends with the pattern. Nothing but an empty pattern matches an empty name, not even "*" (util.c, stringmatchlen): KEYS and SCAN
// know "*" themselves.
//
// The stars cut a pattern into pieces of fixed length. The first and the last stand at the ends of the name, and each of the others is taken
// where it fits first, which leaves the most for those behind it, so none is tried twice. A piece of plain bytes is found as bytes.Index finds
// it. A piece with ? or a class is found with one bit for each of its bytes, 64 of them in a step: a name of n bytes costs n steps for every
// 64 bytes of the piece.
package glob

import "bytes"

// Pattern is a compiled pattern. It does not change, so any number of goroutines may match with it.
type Pattern struct {
	pieces []piece // one more than there are stars; a run of stars is one
	least  int     // length of the shortest name that fits
	empty  bool    // the pattern has no byte at all
}

// Match reports whether pattern matches the whole of name. To match many names, Compile the pattern once.
func Match(pattern, name []byte) bool { return Compile(pattern).Match(name) }

// Compile reads a pattern, of which it keeps nothing. Any bytes are a pattern.
func Compile(pattern []byte) *Pattern {
	p := &Pattern{empty: len(pattern) == 0}
	for rest := pattern; ; {
		var next piece
		for len(rest) > 0 && rest[0] != '*' {
			rest = next.read(rest)
		}
		p.pieces = append(p.pieces, next)
		p.least += next.length()
		if len(rest) == 0 {
			break
		}
		rest = bytes.TrimLeft(rest, "*")
	}
	if inner := len(p.pieces) - 1; inner > 1 {
		for i := range p.pieces[1:inner] {
			p.pieces[1+i].prepare()
		}
	}
	return p
}

// Match reports whether p matches the whole of name.
func (p *Pattern) Match(name []byte) bool {
	if len(name) == 0 {
		return p.empty
	}
	first, last := &p.pieces[0], &p.pieces[len(p.pieces)-1]
	switch {
	case len(name) < p.least:
		return false
	case first == last:
		return len(name) == p.least && first.fits(name)
	case !first.fits(name) || !last.fits(name[len(name)-last.length():]):
		return false
	}
	between := name[first.length() : len(name)-last.length()]
	for i := 1; i < len(p.pieces)-1; i++ {
		end := p.pieces[i].find(between)
		if end < 0 {
			return false
		}
		between = between[end:]
	}
	return true
}
