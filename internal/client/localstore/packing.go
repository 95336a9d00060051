package localstore

import (
	"reflect"
	"unsafe"
)

// packedMost is up to how many bytes key and value together are packed. The room that dead entries take in pages grows
// with what is packed: beyond this it would be more than the allocations that packing saves. It is below nilText.
const packedMost = 192

// packing is how the values of a type are written into bytes that the garbage collector does not scan. A type can be packed if
// it has no pointer, but for at most one string or []byte: a number, a string, a struct of a []byte and numbers.
//
// A packed value is its text, and its memory without the header of the string or slice: the rest.
type packing struct {
	size   int // of the type in memory; -1: it cannot be packed
	at     int // where in it the header of the text is
	header int // the size of that header, 0 without a text
	bytes  bool
}

// packingOf returns how values of type V are packed.
func packingOf[V any]() packing {
	t := reflect.TypeFor[V]()
	p := packing{size: int(t.Size())}
	if !p.find(t, 0) {
		return packing{size: -1}
	}
	return p
}

// find looks for the text in a part of the type, and reports whether that part can be packed.
func (p *packing) find(t reflect.Type, at int) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return true
	case reflect.String:
		return p.oneText(t, at)
	case reflect.Slice:
		p.bytes = t.Elem().Kind() == reflect.Uint8
		return p.bytes && p.oneText(t, at)
	case reflect.Array:
		free := *p // elements may be packed if they have no text
		return t.Len() == 0 || free.find(t.Elem(), at) && (free == *p || t.Len() == 1 && p.find(t.Elem(), at))
	case reflect.Struct:
		for f := range t.Fields() {
			if !p.find(f.Type, at+int(f.Offset)) {
				return false
			}
		}
		return true
	}
	return false
}

func (p *packing) oneText(t reflect.Type, at int) bool {
	if p.header != 0 {
		return false // a second one
	}
	p.at, p.header = at, int(t.Size())
	return true
}

// fits reports whether an entry of key with this text is packed.
func (p *packing) fits(key string, text []byte) bool {
	return p.size >= 0 && len(key)+p.rest()+len(text) <= packedMost
}

// rest is the size of what is packed beside the text.
func (p *packing) rest() int { return p.size - p.header }

// textOf returns the text of the value at v. It aliases the value's.
func (p *packing) textOf(v unsafe.Pointer) []byte {
	switch {
	case p.header == 0:
		return nil
	case p.bytes:
		return *(*[]byte)(unsafe.Add(v, p.at))
	}
	s := *(*string)(unsafe.Add(v, p.at))
	return unsafe.Slice(unsafe.StringData(s), len(s))
}

// around returns the memory of the value at v before and after the text's header, in which there is no pointer.
func (p *packing) around(v unsafe.Pointer) (before, after []byte) {
	if p.at > 0 {
		before = unsafe.Slice((*byte)(v), p.at)
	}
	if end := p.at + p.header; end < p.size {
		after = unsafe.Slice((*byte)(unsafe.Add(v, end)), p.size-end)
	}
	return before, after
}

// pack writes the value at v into e.
func (p *packing) pack(e *packed, v unsafe.Pointer, text []byte) {
	if n := p.rest(); n > 0 {
		before, after := p.around(v)
		rest := e.restOf(n)
		copy(rest[copy(rest, before):], after)
	}
	copy(e.textOf(), text)
}

// unpack makes the value at v of what pack wrote. The text stays where it is: it keeps the page in memory, and a []byte must not be
// changed.
func (p *packing) unpack(v unsafe.Pointer, e *packed) {
	if n := p.rest(); n > 0 {
		before, after := p.around(v)
		rest := e.restOf(n)
		copy(after, rest[copy(before, rest):])
	}
	if p.bytes {
		*(*[]byte)(unsafe.Add(v, p.at)) = e.textOf()
	} else if p.header != 0 {
		text := e.textOf()
		*(*string)(unsafe.Add(v, p.at)) = unsafe.String(unsafe.SliceData(text), len(text))
	}
}
