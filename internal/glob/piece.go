package glob

import "bytes"

// piece is the part of a pattern between two stars: a set of bytes for each position.
type piece struct {
	plain []byte   // its bytes, if each position allows only one
	sets  []set    // otherwise one for each position
	masks []uint64 // for find: see prepare
}

// set is a set of bytes.
type set [4]uint64

func (s *set) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *set) has(b byte) bool { return s[b>>6]>>(b&63)&1 == 1 }

// not is every byte except those in s.
func (s set) not() set { return set{^s[0], ^s[1], ^s[2], ^s[3]} }

// every is what ? matches.
var every = set{}.not()

// length is how many bytes of a name the piece matches.
func (p *piece) length() int { return len(p.plain) + len(p.sets) }

// read adds the first item of pattern, which is not a star, and returns the rest of the pattern.
func (p *piece) read(pattern []byte) (rest []byte) {
	switch {
	case pattern[0] == '?':
		p.choice(every)
	case pattern[0] == '[':
		class, n := readClass(pattern)
		p.choice(class)
		return pattern[n:]
	case pattern[0] == '\\' && len(pattern) > 1:
		p.byte(pattern[1])
		return pattern[2:]
	default:
		p.byte(pattern[0])
	}
	return pattern[1:]
}

func (p *piece) byte(b byte) {
	if p.sets == nil {
		p.plain = append(p.plain, b)
		return
	}
	var s set
	s.add(b)
	p.sets = append(p.sets, s)
}

func (p *piece) choice(s set) {
	if p.sets == nil {
		p.sets = make([]set, 0, len(p.plain)+1)
		for _, b := range p.plain {
			p.sets = append(p.sets, set{})
			p.sets[len(p.sets)-1].add(b)
		}
		p.plain = nil
	}
	p.sets = append(p.sets, s)
}

// readClass reads the class at the beginning of pattern, and returns its length.
func readClass(pattern []byte) (s set, n int) {
	i, not := 1, false
	if i < len(pattern) && pattern[i] == '^' {
		i, not = i+1, true
	}
	for i < len(pattern) && pattern[i] != ']' {
		switch rest := pattern[i:]; {
		case rest[0] == '\\' && len(rest) > 1:
			s.add(rest[1])
			i += 2
		case len(rest) > 2 && rest[1] == '-':
			for b := int(min(rest[0], rest[2])); b <= int(max(rest[0], rest[2])); b++ {
				s.add(byte(b))
			}
			i += 3
		default:
			s.add(rest[0])
			i++
		}
	}
	if not {
		s = s.not()
	}
	return s, min(i+1, len(pattern))
}

// fits reports whether the piece matches the beginning of name, which is long enough.
func (p *piece) fits(name []byte) bool {
	if p.sets == nil {
		return bytes.HasPrefix(name, p.plain)
	}
	for i := range p.sets {
		if !p.sets[i].has(name[i]) {
			return false
		}
	}
	return true
}

// words is how many words hold one bit for each position.
func (p *piece) words() int { return (len(p.sets) + 63) / 64 }

// prepare makes a piece ready for find: for each byte, the positions that allow it, as bits.
func (p *piece) prepare() {
	words := p.words()
	p.masks = make([]uint64, 256*words)
	for place := range p.sets {
		for b := range 256 {
			if p.sets[place].has(byte(b)) {
				p.masks[b*words+place/64] |= 1 << (place % 64)
			}
		}
	}
}

// find returns the end of the first match of the piece in name, -1 if there is none.
//
// A bit of the state says that the latest bytes of the name match the piece up to that position. Each byte shifts all bits by one, starts a
// match at the first position, and keeps the bits of the positions that allow it. This is the shift-and algorithm of Baeza-Yates and Gonnet.
func (p *piece) find(name []byte) int {
	if p.sets == nil {
		if at := bytes.Index(name, p.plain); at >= 0 {
			return at + len(p.plain)
		}
		return -1
	}
	words, last := p.words(), (len(p.sets)-1)%64
	if words == 1 {
		var state uint64
		for i, b := range name {
			if state = (state<<1 | 1) & p.masks[b]; state>>last&1 == 1 {
				return i + 1
			}
		}
		return -1
	}
	state := make([]uint64, words)
	for i, b := range name {
		carry := uint64(1)
		for w, takes := range p.masks[int(b)*words : (int(b)+1)*words] {
			state[w], carry = (state[w]<<1|carry)&takes, state[w]>>63
		}
		if state[words-1]>>last&1 == 1 {
			return i + 1
		}
	}
	return -1
}
