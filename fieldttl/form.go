package fieldttl

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/mayflycache/mayfly"
)

// A form is how a field's value is text, as go-redis writes and scans it where go-redis can. Values are addressable.
type form struct {
	append func(dst []byte, v reflect.Value) ([]byte, error)
	parse  func(text string, v reflect.Value) error
	// optional is set for a pointer: nil is a field that is not there.
	optional bool
}

// formOf chooses by the type, once.
func formOf(t reflect.Type) (form, error) {
	if t.Kind() == reflect.Pointer {
		inner, err := formOf(t.Elem())
		if err != nil || inner.optional {
			return form{}, fmt.Errorf("a field cannot have the type %v", t)
		}
		return form{
			append: func(dst []byte, v reflect.Value) ([]byte, error) { return inner.append(dst, v.Elem()) },
			parse: func(text string, v reflect.Value) error {
				v.Set(reflect.New(t.Elem()))
				return inner.parse(text, v.Elem())
			},
			optional: true,
		}, nil
	}
	if isText(t) {
		return form{append: appendText, parse: parseText}, nil
	}
	switch kind := t.Kind(); {
	case kind == reflect.String:
		return form{
			append: func(dst []byte, v reflect.Value) ([]byte, error) { return append(dst, v.String()...), nil },
			parse:  func(text string, v reflect.Value) error { v.SetString(text); return nil },
		}, nil
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return form{
			append: func(dst []byte, v reflect.Value) ([]byte, error) { return append(dst, v.Bytes()...), nil },
			parse:  func(text string, v reflect.Value) error { v.SetBytes([]byte(text)); return nil },
		}, nil
	case kind == reflect.Bool:
		return form{append: appendBool, parse: parseBool}, nil
	case reflect.Int <= kind && kind <= reflect.Int64: // a time.Duration is its nanoseconds, as for go-redis
		return form{
			append: func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendInt(dst, v.Int(), 10), nil },
			parse: func(text string, v reflect.Value) error {
				n, err := strconv.ParseInt(text, 10, t.Bits())
				v.SetInt(n)
				return err
			},
		}, nil
	case reflect.Uint <= kind && kind <= reflect.Uint64:
		return form{
			append: func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendUint(dst, v.Uint(), 10), nil },
			parse: func(text string, v reflect.Value) error {
				n, err := strconv.ParseUint(text, 10, t.Bits())
				v.SetUint(n)
				return err
			},
		}, nil
	case kind == reflect.Float32 || kind == reflect.Float64:
		return form{
			append: func(dst []byte, v reflect.Value) ([]byte, error) {
				return strconv.AppendFloat(dst, v.Float(), 'f', -1, t.Bits()), nil
			},
			parse: func(text string, v reflect.Value) error {
				n, err := strconv.ParseFloat(text, t.Bits())
				v.SetFloat(n)
				return err
			},
		}, nil
	}
	// JSON for the rest, if it can have any.
	if err := jsonable(t, map[reflect.Type]bool{}); err != nil {
		return form{}, err
	}
	return form{append: appendJSON, parse: parseJSON}, nil
}

// isText reports whether a t writes itself as text and reads it back, as time.Time does.
func isText(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) && p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func appendText(dst []byte, v reflect.Value) ([]byte, error) {
	switch v := v.Addr().Interface().(type) {
	case encoding.TextAppender:
		return v.AppendText(dst)
	default:
		text, err := v.(encoding.TextMarshaler).MarshalText()
		return append(dst, text...), err
	}
}

func parseText(text string, v reflect.Value) error {
	if t, is := v.Addr().Interface().(*time.Time); is { // the common one, without a copy of the text
		var err error
		*t, err = time.Parse(time.RFC3339, text)
		return err
	}
	return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
}

func appendBool(dst []byte, v reflect.Value) ([]byte, error) {
	if v.Bool() {
		return append(dst, '1'), nil
	}
	return append(dst, '0'), nil
}

func parseBool(text string, v reflect.Value) error {
	b, err := strconv.ParseBool(text)
	v.SetBool(b)
	return err
}

func appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	return mayfly.JSON[any]{}.Append(dst, v.Addr().Interface())
}

func parseJSON(text string, v reflect.Value) error {
	return json.Unmarshal([]byte(text), v.Addr().Interface())
}

// jsonable finds in a type what JSON has no words for: channels, functions, complex numbers, interfaces that nothing can be decoded into.
func jsonable(t reflect.Type, seen map[reflect.Type]bool) error {
	p := reflect.PointerTo(t)
	if seen[t] || isText(t) || p.Implements(reflect.TypeFor[json.Marshaler]()) && p.Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		return fmt.Errorf("a %v has no text: leave it out by `redis:\"-\"`", t)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("a %v cannot be read back: leave it out by `redis:\"-\"`", t)
		}
	case reflect.Slice, reflect.Array, reflect.Pointer, reflect.Map:
		return jsonable(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				if err := jsonable(f.Type, seen); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
