package ttlaudit

import "strings"

// A forest groups keys by their patterns. A key is split into parts at the separators. A part that looks like an ID becomes "*". So does
// every part in a place where more different parts occur than the fan-out allows, such as names. A key's pattern follows from the set of
// all keys, not from their order. There are never more patterns than most: when there would be, the fan-out is halved until they fit; only
// the moment at which that happens depends on the order.
//
// Fields are exported, here and below, so that an audit's state can be saved.
type forest struct {
	Root   branch
	Leaves int // number of tallies
	Inner  int // fan-out of parts that are followed by others
	Last   int // fan-out of last parts
	Most   int
}

const (
	separators = ":/|"
	deepest    = 6 // number of parts; what follows them is "**"
)

func newForest(most int) *forest { return &forest{Inner: 128, Last: 32, Most: most} }

// branch is a place in keys. For each separator, and for the end of the key, it has the parts that can come next.
type branch struct {
	Tally *tally // of the keys that end here; nil: no key does
	Next  [len(separators) + 1]parts
}

type parts struct {
	Of     map[string]*branch
	Folded bool // the parts are merged into "*"
}

// at returns the tally of key's pattern.
func (f *forest) at(key string) *tally {
	b := &f.Root
	for depth, group := 1, 1; group > 0; depth++ {
		var part string
		part, group, key = cut(key)
		if depth == deepest && group > 0 {
			part, group = "**", 0
		} else {
			part = shape(part)
		}
		p := &b.Next[group]
		if !p.Folded && len(p.Of) >= f.fanOut(group) && p.Of[part] == nil {
			f.fold(p)
		}
		b = p.at(part)
	}
	t := b.Tally
	if t == nil {
		t = new(tally)
		b.Tally = t
		f.Leaves++
		f.narrow()
	}
	return t.latest()
}

// at returns the branch of a part, which it creates if there is none.
func (p *parts) at(part string) *branch {
	if p.Folded && part != "" && part != "**" {
		part = "*"
	}
	b := p.Of[part]
	if b == nil {
		if p.Of == nil {
			p.Of = make(map[string]*branch, 1)
		}
		b = new(branch)
		p.Of[strings.Clone(part)] = b
	}
	return b
}

func (f *forest) fanOut(group int) int {
	if group == 0 {
		return f.Last
	}
	return f.Inner
}

// fold merges the parts of p into "*".
func (f *forest) fold(p *parts) {
	was := p.Of
	p.Of, p.Folded = nil, true
	for part, b := range was {
		f.merge(p.at(part), b)
	}
}

// merge moves the contents of from into to.
func (f *forest) merge(into, from *branch) {
	switch {
	case from.Tally == nil:
	case into.Tally == nil:
		into.Tally = from.Tally
	default:
		into.Tally.add(from.Tally)
		from.Tally.heir = into.Tally
		f.Leaves--
	}
	for g := range from.Next {
		p, q := &into.Next[g], &from.Next[g]
		for part, b := range q.Of {
			f.merge(p.at(part), b)
		}
		if !p.Folded && (q.Folded || len(p.Of) > f.fanOut(g)) {
			f.fold(p)
		}
	}
}

// narrow halves the fan-out until there are few enough patterns.
func (f *forest) narrow() {
	for f.Leaves > f.Most && f.Inner > 1 {
		f.Inner, f.Last = max(f.Inner/2, 1), max(f.Last/2, 1)
		all := new(branch)
		f.merge(all, &f.Root)
		f.Root = *all
	}
}

// each visits the patterns of the keys that begin with pattern, in no order.
func (b *branch) each(pattern string, visit func(string, *tally)) {
	if b.Tally != nil {
		visit(pattern, b.Tally)
	}
	for g := range b.Next {
		end := ""
		if g > 0 {
			end = separators[g-1 : g]
		}
		for part, next := range b.Next[g].Of {
			next.each(pattern+part+end, visit)
		}
	}
}

// cut returns the first part of key, the separator that ends it, numbered from 1, and the rest; or all of key and 0.
func cut(key string) (part string, group int, rest string) {
	if i := strings.IndexAny(key, separators); i >= 0 {
		return key[:i], 1 + strings.IndexByte(separators, key[i]), key[i+1:]
	}
	return key, 0, ""
}

// shape returns a part with everything that looks like an ID replaced by "*": a number, a date, a UUID, a token, or a number within a word.
// A cluster's hash tag keeps its braces. A "*" or backslash in the key itself is escaped.
func shape(part string) string {
	if len(part) == 0 || isWord(part) {
		return part
	}
	open, end := strings.IndexByte(part, '{'), strings.IndexByte(part, '}')
	if open < 0 || end < open {
		return plainShape(part)
	}
	var b strings.Builder
	for ; open >= 0 && end > open; open, end = strings.IndexByte(part, '{'), strings.IndexByte(part, '}') {
		b.WriteString(plainShape(part[:open]) + "{" + plainShape(part[open+1:end]) + "}")
		part = part[end+1:]
	}
	b.WriteString(plainShape(part))
	return b.String()
}

// plainShape is shape for a part without a hash tag.
func plainShape(part string) string {
	switch {
	case len(part) == 0, isWord(part):
		return part
	case isID(part):
		return "*"
	}
	var b strings.Builder
	for i := 0; i < len(part); {
		digits := i
		for digits < len(part) && isDigit(part[digits]) {
			digits++
		}
		switch {
		case digits-i >= 3, digits > i && i > 0 && digits == len(part) && (part[i-1] == '-' || part[i-1] == '_'): // user1001, item-7
			b.WriteByte('*')
			i = digits
		case digits > i: // v2
			b.WriteString(part[i:digits])
			i = digits
		default:
			if part[i] == '*' || part[i] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(part[i])
			i++
		}
	}
	return b.String()
}

// isWord reports whether a part cannot look like an ID, which is true of most.
func isWord(part string) bool {
	return len(part) < longest && !strings.ContainsAny(part, `0123456789{*\`)
}

// longest is how long a word can be without being a token.
const longest = 40

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isID reports whether a part as a whole is an ID.
func isID(part string) bool {
	digits, hex, letters := 0, 0, 0
	for i := range len(part) {
		switch c := part[i]; {
		case isDigit(c):
			digits++
		case c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			hex++
		case c >= 'g' && c <= 'z' || c >= 'G' && c <= 'Z':
			letters++
		case c >= 0x80:
			letters++
		case strings.IndexByte("-_.+=~@,", c) < 0:
			return len(part) >= longest
		}
	}
	switch {
	case digits == 0:
		return len(part) >= longest
	case hex == 0 && letters == 0: // 1001, 2026-11-21, 52.52,13.40
		return true
	case letters == 0: // part of a hash or a UUID
		return digits+hex >= 8
	}
	return digits+hex+letters >= 16 && digits*12 >= len(part) // a token
}
