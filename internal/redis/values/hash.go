package values

import (
	"bytes"
	"slices"
	"unsafe"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// HashValue maps fields to values. A field may have a deadline of its own. A field past its deadline is dead, but stays and counts in Len
// until Expire or Remove removes it: the methods return dead fields with their deadlines, and the caller hides them.
//
// A small hash is one piece of memory (pack), in insertion order, or in the order of deadlines once it has had one. A large one is a table.
type HashValue struct {
	small pack
	large *table[[]byte] // nil: the fields are in small
	ends  fieldEnds      // deadlines of large, by slot
}

// NewHash returns an empty hash.
func NewHash() *HashValue { return &HashValue{} }

// Kind returns Hash.
func (h *HashValue) Kind() Kind { return Hash }

// Encoding returns Redis's name of the form. A small hash that was once prepared for deadlines stays a listpackex.
func (h *HashValue) Encoding() string {
	switch {
	case h.large != nil:
		return "hashtable"
	case h.small.timed:
		return "listpackex"
	}
	return "listpack"
}

// Len returns the number of fields, dead ones included.
func (h *HashValue) Len() int {
	if h.large != nil {
		return h.large.len()
	}
	return h.small.n
}

// Clone returns a copy, deadlines included.
func (h *HashValue) Clone() Value {
	c := &HashValue{small: h.small.clone()}
	if h.large != nil {
		c.large = newTable[[]byte](h.Len())
		for slot, it := range h.large.each {
			c.ends.set(c.large.put(it.name, bytes.Clone(it.data)), h.ends.get(slot))
		}
	}
	return c
}

// Size returns roughly how many bytes the hash takes.
func (h *HashValue) Size() int {
	n := int(unsafe.Sizeof(*h)) + cap(h.small.b)
	if h.large != nil {
		const overhead = 48 + 40 // of a slot and its entry in the map
		n += cap(h.large.items)*overhead + h.ends.size()
		for _, it := range h.large.each {
			n += len(it.name) + cap(it.data)
		}
	}
	return n
}

// Fit prepares for the fields and values to be added: if they are too many, or one is too long for the small form, the hash becomes large at
// once.
func (h *HashValue) Fit(fieldsAndValues [][]byte, lim Limits) {
	switch {
	case h.large != nil:
	case len(fieldsAndValues)/2 > lim.HashMaxListpackEntries:
		h.enlarge(len(fieldsAndValues) / 2)
	case slices.ContainsFunc(fieldsAndValues, func(b []byte) bool { return len(b) > lim.HashMaxListpackValue }):
		h.enlarge(0)
	}
}

// Get returns the value and the deadline of a field.
func (h *HashValue) Get(field []byte) (value []byte, deadline int64, ok bool) {
	if h.large != nil {
		slot, ok := h.large.slots[string(field)]
		if !ok {
			return nil, expiry.None, false
		}
		return h.large.items[slot].data, h.ends.get(slot), true
	}
	e, ok := h.small.find(field)
	if !ok {
		return nil, expiry.None, false
	}
	return h.small.value(e), h.small.deadline(e), true
}

// Set gives field this value, and reports whether the field is new. It removes the field's deadline unless keep is set.
func (h *HashValue) Set(field, value []byte, keep bool, lim Limits) (added bool) {
	if h.large == nil {
		if len(field) <= lim.HashMaxListpackValue && len(value) <= lim.HashMaxListpackValue {
			added = h.small.set(field, value, keep)
			if h.small.n > lim.HashMaxListpackEntries {
				h.enlarge(0)
			}
			return added
		}
		h.enlarge(0)
	}
	slot, ok := h.large.slots[string(field)]
	if !ok {
		h.large.add(field, bytes.Clone(value))
		return true
	}
	if !keep {
		h.ends.set(slot, expiry.None)
	}
	old := &h.large.items[slot].data
	if c := cap(*old); len(value) > c || c > 2*len(value)+32 {
		*old = nil
	}
	*old = append((*old)[:0], value...)
	return false
}

// Remove removes a field and reports whether it was there.
func (h *HashValue) Remove(field []byte) bool {
	if h.large == nil {
		e, ok := h.small.find(field)
		if ok {
			h.small.remove(e)
		}
		return ok
	}
	slot, ok := h.large.slots[string(field)]
	if ok {
		h.ends.set(slot, expiry.None)
		h.large.remove(field)
	}
	return ok
}

// Each calls do with every field, dead ones included, until it returns false. do must not change the hash.
func (h *HashValue) Each(do func(field, value []byte, deadline int64) bool) {
	if h.large != nil {
		for slot, it := range h.large.each {
			if !do(Bytes(it.name), it.data, h.ends.get(slot)) {
				break
			}
		}
		return
	}
	for at := 0; at < len(h.small.b); {
		e := h.small.entry(at)
		if !do(h.small.field(e), h.small.value(e), h.small.deadline(e)) {
			return
		}
		at = e.end
	}
}

// Scan calls do with the fields from cursor on, about count of a large hash or all of a small one, and returns the next cursor, 0 at the end.
func (h *HashValue) Scan(cursor uint64, count int, do func(field, value []byte, deadline int64)) uint64 {
	if h.large == nil {
		h.Each(func(field, value []byte, deadline int64) bool {
			do(field, value, deadline)
			return true
		})
		return 0
	}
	return h.large.scan(cursor, count, func(slot uint32, it *item[[]byte]) { do(Bytes(it.name), it.data, h.ends.get(slot)) })
}

// enlarge makes the hash large, with room for more fields.
func (h *HashValue) enlarge(more int) {
	t := newTable[[]byte](h.small.n + more)
	h.Each(func(field, value []byte, deadline int64) bool {
		h.ends.set(t.add(field, bytes.Clone(value)), deadline)
		return true
	})
	h.large, h.small = t, pack{}
}

// Bytes returns the bytes of a name that a value returned. They must not be changed.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
