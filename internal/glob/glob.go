// Package glob matches names with Redis's patterns, as in KEYS, SCAN and PSUBSCRIBE, in time that an adversary cannot stretch.
//
//	p := glob.Compile([]byte("user:*:[0-9]?"))
//	p.Match([]byte("user:ada:42"))
//
// The rules: * matches any bytes, ? one byte, [a-z] one of these, [^a-z] one of the others, and a backslash makes the next byte literal. A
// class that is never closed ends with the pattern. Only an empty pattern matches an empty name; not even "*" does (util.c, stringmatchlen):
// KEYS and SCAN handle "*" themselves.
//
// The stars cut a pattern into pieces of fixed length. The first and the last must match at the ends of the name. Each of the others is
// matched at the first place where it fits, which leaves the most room for those behind it, so no piece is tried twice. A piece of plain
// bytes is found by bytes.Index. A piece with ? or a class is found with one bit for each of its positions, 64 of them in a step: a name of n
// bytes costs n steps for every 64 positions of the piece.
package glob

import "bytes"

// Pattern is a compiled pattern. It does not change, so any number of goroutines may use it.
type Pattern struct {
	pieces []piece // one more than there are stars; a run of stars counts as one
	least  int     // length of the shortest matching name
	empty  bool    // the pattern is empty
}

// Match reports whether pattern matches the whole of name. To match many names, Compile the pattern once.
func Match(pattern, name []byte) bool { return Compile(pattern).Match(name) }

// Compile reads a pattern and keeps nothing of its bytes. Any bytes are a valid pattern.
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
