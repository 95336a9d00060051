package check

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
)

// JSON returns an error if encoding/json cannot write values of t or read back what it writes. That holds for channels, functions, complex
// numbers, interfaces with methods, maps whose keys have no text, and structs that would come back empty because they export nothing. It
// trusts types that marshal themselves. It also accepts a field that points to a type that would come back empty: url.URL has one, which is
// nearly always nil. addressable says whether the values can be addressed, as those behind a pointer can; otherwise encoding/json does not
// call methods of a pointer to t.
func JSON(t reflect.Type, addressable bool) error {
	return carried{}.check(t, addressable, "")
}

// carried are the types checked so far.
type carried map[seen]bool

type seen struct {
	t           reflect.Type
	addressable bool
}

func (c carried) check(t reflect.Type, addressable bool, where string) error {
	if c[seen{t, addressable}] || writesItself(t, addressable) {
		return nil
	}
	c[seen{t, addressable}] = true
	bad := func(what string) error { return fmt.Errorf("a %v %s%s", t, what, where) }
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return bad("has no text")
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return bad("cannot be read back")
		}
	case reflect.Pointer, reflect.Slice:
		return c.check(t.Elem(), true, where)
	case reflect.Array:
		return c.check(t.Elem(), addressable, where)
	case reflect.Map:
		if !isKey(t.Key()) {
			return bad(fmt.Sprintf("has keys without a text, %v", t.Key()))
		}
		return c.check(t.Elem(), false, where)
	case reflect.Struct:
		if comesBackEmpty(t, addressable) {
			return bad("comes back empty: it has no exported field, and no MarshalJSON method with a value receiver")
		}
		return c.fields(t, addressable)
	}
	return nil
}

// fields checks the fields of a struct that encoding/json sees.
func (c carried) fields(t reflect.Type, addressable bool) error {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Tag.Get("json") == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && (f.Anonymous || f.Type != inner) && comesBackEmpty(inner, addressable || f.Type != inner) {
			continue // an embedded lock, or the Userinfo of a url.URL
		}
		if !f.IsExported() && inner.Kind() != reflect.Struct {
			continue
		}
		if err := c.check(f.Type, addressable, fmt.Sprintf(" (field %v.%s)", t, f.Name)); err != nil {
			return err
		}
	}
	return nil
}

// comesBackEmpty reports whether a struct does not marshal itself and has fields, none of which encoding/json sees.
func comesBackEmpty(t reflect.Type, addressable bool) bool {
	if writesItself(t, addressable) {
		return false
	}
	hidden := false
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.IsExported() && !f.Anonymous, f.Anonymous && f.Type.Kind() != reflect.Struct:
			return false
		case f.Anonymous && !comesBackEmpty(f.Type, addressable):
			return false
		}
		hidden = hidden || f.Name != "_"
	}
	return hidden
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	textReader    = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// writesItself reports whether encoding/json calls a method of t to write it.
func writesItself(t reflect.Type, addressable bool) bool {
	is := func(t reflect.Type) bool { return t.Implements(marshaler) || t.Implements(textMarshaler) }
	return is(t) || addressable && is(reflect.PointerTo(t))
}

// isKey reports whether encoding/json accepts t as the key of a map and can read it back.
func isKey(t reflect.Type) bool {
	k := t.Kind()
	return k == reflect.String || reflect.Int <= k && k <= reflect.Uintptr || t.Implements(textMarshaler) && reflect.PointerTo(t).Implements(textReader)
}
