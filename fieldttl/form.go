package fieldttl

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/check"
)

// A form converts a field's value to text and back, as go-redis writes and scans it where it can. Values are addressable.
type form struct {
	append func(dst []byte, v reflect.Value) ([]byte, error)
	parse  func(text string, v reflect.Value) error
	// optional is set for a pointer: nil is a field that the hash does not have.
	optional bool
}

// formOf chooses a form by the type, once.
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
		return scalar(
			func(dst []byte, v reflect.Value) []byte { return append(dst, v.String()...) },
			func(text string) (string, error) { return text, nil },
			reflect.Value.SetString), nil
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return scalar(
			func(dst []byte, v reflect.Value) []byte { return append(dst, v.Bytes()...) },
			func(text string) ([]byte, error) { return []byte(text), nil },
			reflect.Value.SetBytes), nil
	case kind == reflect.Bool:
		return scalar(appendBool, strconv.ParseBool, reflect.Value.SetBool), nil
	case reflect.Int <= kind && kind <= reflect.Int64: // a time.Duration is its nanoseconds, as for go-redis
		return scalar(
			func(dst []byte, v reflect.Value) []byte { return strconv.AppendInt(dst, v.Int(), 10) },
			func(text string) (int64, error) { return strconv.ParseInt(text, 10, t.Bits()) },
			reflect.Value.SetInt), nil
	case reflect.Uint <= kind && kind <= reflect.Uint64:
		return scalar(
			func(dst []byte, v reflect.Value) []byte { return strconv.AppendUint(dst, v.Uint(), 10) },
			func(text string) (uint64, error) { return strconv.ParseUint(text, 10, t.Bits()) },
			reflect.Value.SetUint), nil
	case kind == reflect.Float32 || kind == reflect.Float64:
		return scalar(
			func(dst []byte, v reflect.Value) []byte {
				return strconv.AppendFloat(dst, v.Float(), 'f', -1, t.Bits())
			},
			func(text string) (float64, error) { return strconv.ParseFloat(text, t.Bits()) },
			reflect.Value.SetFloat), nil
	}
	// JSON for the rest, if encoding/json can carry it.
	if err := check.JSON(t, true); err != nil {
		return form{}, fmt.Errorf("%w: leave it out by `redis:\"-\"`", err)
	}
	if anyIn(t, nil) {
		return form{append: appendJSON, parse: parseJSONWithAny}, nil
	}
	return form{append: appendJSON, parse: parseJSON}, nil
}

// scalar is the form of a type that has a text for every value.
func scalar[S any](write func(dst []byte, v reflect.Value) []byte, parse func(text string) (S, error), set func(v reflect.Value, to S)) form {
	return form{
		append: func(dst []byte, v reflect.Value) ([]byte, error) { return write(dst, v), nil },
		parse: func(text string, v reflect.Value) error {
			s, err := parse(text)
			set(v, s)
			return err
		},
	}
}

// isText reports whether t writes itself as text and reads itself back, as time.Time does.
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
	if t, is := v.Addr().Interface().(*time.Time); is { // the common case, without a copy of the text
		var err error
		*t, err = time.Parse(time.RFC3339, text)
		return err
	}
	return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
}

func appendBool(dst []byte, v reflect.Value) []byte {
	if v.Bool() {
		return append(dst, '1')
	}
	return append(dst, '0')
}

func appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	return mayfly.JSON[any]{}.Append(dst, v.Addr().Interface())
}

func parseJSON(text string, v reflect.Value) error {
	return json.Unmarshal([]byte(text), v.Addr().Interface())
}
