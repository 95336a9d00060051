package engine

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// sortCommands are SORT and SORT_RO.
var sortCommands = []Command{
	{Name: "sort", Arity: -2, Flags: Write | DenyOOM | MovableKeys, Cats: CatSet | CatSortedSet | CatList | CatDangerous, Keys: Keys{First: 1, Last: 1, Step: 1, Find: sortKeys}, run: func(c *call) { sort(c, true) }},
	{Name: "sort_ro", Arity: -2, Flags: ReadOnly | MovableKeys, Cats: CatSet | CatSortedSet | CatList | CatDangerous, Keys: oneKey, run: func(c *call) { sort(c, false) }},
}

// sortKeys are the key and the destination; the last STORE counts. Keys made from patterns cannot be known beforehand.
func sortKeys(args [][]byte) []int {
	at := []int{1}
	for i := 2; i < len(args); i++ {
		switch {
		case is(args[i], "LIMIT"):
			i += 2
		case is(args[i], "GET"), is(args[i], "BY"):
			i++
		case is(args[i], "STORE") && i+1 < len(args):
			i++
			at = append(at[:1], i)
		}
	}
	return at
}

const errNotSortable = "ERR One or more scores can't be converted into double"

// sorting holds the arguments of SORT.
type sorting struct {
	desc, alpha   bool
	offset, count int64
	by            pattern
	unsorted      bool // BY a name without a star: keep the order
	get           []pattern
	store         []byte // nil: reply
}

// sortable is one element and what it is sorted by.
type sortable struct {
	element string
	number  float64
	text    []byte // ALPHA with BY
	found   bool   // whether text was found
}

func sort(c *call, storing bool) {
	s := c.sorting(storing)
	o := c.read(c.args[1])
	if o != nil && (o.kind() == values.String || o.kind() == values.Hash) {
		c.fail(errWrongType)
	}
	if c.failed {
		return
	}
	if o != nil && o.kind() == values.Set && s.unsorted && (s.store != nil || c.s == c.e.scripts.session) {
		s.unsorted, s.alpha, s.by = false, true, pattern{} // a stored result, or what a script does, must not depend on the order of a set
	}
	all := elements(o, s.unsorted && s.desc)
	if !s.unsorted {
		if !s.weigh(c, all) {
			c.fail(errNotSortable)
			return
		}
		slices.SortStableFunc(all, s.compare)
	}
	all = s.part(all)
	if s.store != nil {
		s.keep(c, all)
		return
	}
	c.out.Array(len(all) * max(len(s.get), 1))
	s.each(c, all, c.bulk)
}

// sorting parses the options.
func (c *call) sorting(storing bool) sorting {
	s := sorting{count: -1}
	for o := c.options(2); o.more(); {
		switch {
		case o.word("ASC", 0):
			s.desc = false
		case o.word("DESC", 0):
			s.desc = true
		case o.word("ALPHA", 0):
			s.alpha = true
		case o.word("LIMIT", 2):
			s.offset, s.count = c.span(o.next())
			o.next()
		case storing && o.word("STORE", 1):
			s.store = c.args[o.next()]
		case o.word("BY", 1):
			text := c.args[o.next()]
			s.by = newPattern(text)
			s.unsorted = s.unsorted || !s.by.starred
			if s.by.starred && c.strays(text) {
				c.fail("ERR BY option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots.")
			}
		case o.word("GET", 1):
			text := c.args[o.next()]
			s.get = append(s.get, newPattern(text))
			if string(text) != "#" && c.strays(text) {
				c.fail("ERR GET option of SORT denied in Cluster mode when keys formed by the pattern may be in different slots.")
			}
		default:
			c.fail(errSyntax)
		}
	}
	return s
}

// elements returns what o holds, in order; backwards reverses it, except for a set.
func elements(o *object, backwards bool) (all []sortable) {
	if o == nil {
		return nil
	}
	add := func(element string) bool {
		all = append(all, sortable{element: element})
		return true
	}
	switch v := o.coll.(type) {
	case *values.SetValue:
		v.Each(add)
		return all
	case *values.ZSetValue:
		v.Enlarge()
		v.Each(0, v.Len(), false, func(m string, _ float64) bool { return add(m) })
	case *values.ListValue:
		v.Each(func(b []byte) bool { return add(string(b)) })
	}
	if backwards {
		slices.Reverse(all)
	}
	return all
}

// weigh looks up each element's sort key; ok is false if a key should be a number and is not. The others are looked up even then.
func (s *sorting) weigh(c *call, all []sortable) (ok bool) {
	ok = true
	for i := range all {
		e := &all[i]
		text, found := []byte(nil), true
		if s.by.text != nil {
			text, found = s.by.lookup(c, e.element)
		} else if !s.alpha {
			text = []byte(e.element)
		}
		if s.alpha {
			e.text, e.found = bytes.Clone(text), found // cloned: looking up the next may remove an expired key and this text with it
			continue
		}
		if found {
			e.number, found = values.ParseLoose(text)
			ok = ok && found
		}
	}
	return ok
}

// compare orders two elements. Equal numbers are ordered by their bytes. Texts that are not to be stored are compared as C strings, which end
// at a zero byte.
func (s *sorting) compare(a, b sortable) (order int) {
	switch {
	case !s.alpha:
		if order = cmp.Compare(a.number, b.number); order == 0 {
			order = strings.Compare(a.element, b.element)
		}
	case s.by.text == nil && s.store != nil:
		order = strings.Compare(a.element, b.element)
	case s.by.text == nil:
		order = strings.Compare(cString(a.element), cString(b.element))
	case !a.found || !b.found:
		order = oneIf(a.found) - oneIf(b.found)
	case s.store != nil:
		order = bytes.Compare(a.text, b.text)
	default:
		order = strings.Compare(cString(string(a.text)), cString(string(b.text)))
	}
	if s.desc {
		return -order
	}
	return order
}

func cString(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

// part applies LIMIT.
func (s *sorting) part(all []sortable) []sortable {
	n := int64(len(all))
	from, to := min(max(s.offset, 0), n), n
	if s.count >= 0 && s.count < n-from {
		to = from + s.count
	}
	return all[from:to]
}

// each calls do for every part of the reply: the elements, or what each GET finds for each of them.
func (s *sorting) each(c *call, all []sortable, do func(b []byte, found bool)) {
	for i := range all {
		if len(s.get) == 0 {
			do([]byte(all[i].element), true)
		}
		for k := range s.get {
			do(s.get[k].lookup(c, all[i].element))
		}
	}
}

// keep stores the result as a list and replies with its length.
func (s *sorting) keep(c *call, all []sortable) {
	list := values.NewList()
	s.each(c, all, func(b []byte, _ bool) { list.PushBack(b, c.e.limits) })
	list.Settle(c.e.limits)
	c.storeAt(s.store, list, list.Len(), notifyList, "sortstore")
}

// pattern is an argument of BY or GET: the name of a key in which the first star stands for the element, optionally followed by "->" and the
// name of a field. "#" in GET is the element itself.
type pattern struct {
	text          []byte // nil: not given
	starred       bool
	before, after []byte
	field         []byte // nil: the key holds a string
}

func newPattern(text []byte) pattern {
	p := pattern{text: text}
	p.before, p.after, p.starred = bytes.Cut(text, []byte("*"))
	if key, field, ok := bytes.Cut(p.after, []byte("->")); ok && len(field) > 0 {
		p.after, p.field = key, field
	}
	return p
}

// lookup returns what the pattern yields for element; found is false if there is nothing or the value has another type.
func (p *pattern) lookup(c *call, element string) (b []byte, found bool) {
	if string(p.text) == "#" {
		return []byte(element), true
	}
	if !p.starred {
		return nil, false
	}
	key := append(append(append([]byte(nil), p.before...), element...), p.after...)
	o := c.read(key)
	switch {
	case o == nil:
		return nil, false
	case p.field == nil:
		return o.str, o.kind() == values.String
	}
	h, ok := o.coll.(*values.HashValue)
	if !ok {
		return nil, false
	}
	b, deadline, found := h.Get(p.field)
	return b, found && !expiry.Dead(deadline, c.e.ms)
}
