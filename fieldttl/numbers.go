package fieldttl

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A number that is read into an any becomes a float64, as in encoding/json, unless it is an integer that a float64 cannot represent
// exactly. Then it becomes an int64, a uint64 or, if it is too large for these, a json.Number. So no digit is lost.

// anyIn reports whether values of t can contain an any that encoding/json fills.
func anyIn(t reflect.Type, within []reflect.Type) bool {
	if slices.Contains(within, t) || readsItself(t) {
		return false
	}
	within = append(within, t)
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return anyIn(t.Elem(), within)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && anyIn(f.Type, within) {
				return true
			}
		}
	}
	return false
}

// readsItself reports whether a t unmarshals itself.
func readsItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) || isText(t)
}

func parseJSONWithAny(text string, v reflect.Value) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(v.Addr().Interface()); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("unexpected data after the value")
	}
	settle(v)
	return nil
}

// settle replaces the json.Numbers in every any in v.
func settle(v reflect.Value) {
	if readsItself(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Interface:
		if v.CanSet() && !v.IsNil() {
			v.Set(settled(v.Elem()))
		}
	case reflect.Pointer:
		if !v.IsNil() && anyIn(v.Type().Elem(), nil) {
			settle(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if anyIn(v.Type().Elem(), nil) {
			for i := range v.Len() {
				settle(v.Index(i))
			}
		}
	case reflect.Map:
		if anyIn(v.Type().Elem(), nil) {
			for _, key := range v.MapKeys() {
				held := reflect.New(v.Type().Elem()).Elem() // the values of a map cannot be changed in place
				held.Set(v.MapIndex(key))
				settle(held)
				v.SetMapIndex(key, held)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() || f.Anonymous {
				settle(v.Field(i))
			}
		}
	}
}

// settled returns what an any holds, with its numbers settled.
func settled(v reflect.Value) reflect.Value {
	if n, is := v.Interface().(json.Number); is {
		return reflect.ValueOf(number(n))
	}
	settle(v) // the elements of a map or slice
	return v
}

func number(n json.Number) any {
	f, err := n.Float64()
	if i, ierr := strconv.ParseInt(n.String(), 10, 64); ierr == nil {
		if exact(i) {
			return f
		}
		return i
	}
	if u, uerr := strconv.ParseUint(n.String(), 10, 64); uerr == nil {
		if float64(u) < 1<<64 && uint64(float64(u)) == u {
			return f
		}
		return u
	}
	if err != nil || !strings.ContainsAny(n.String(), ".eE") {
		return n
	}
	return f
}

// exact reports whether a float64 can represent i exactly.
func exact(i int64) bool {
	f := float64(i)
	return -1<<63 <= f && f < 1<<63 && int64(f) == i
}
