package mayfly

import (
	"fmt"
	"reflect"

	"github.com/mayflycache/mayfly/internal/client/check"
)

// Codec turns values into the bytes that Redis holds, and back. It must be safe for concurrent use. The default is
// [DefaultCodec]; a codec of your own, for msgpack or protobuf say, is these three methods.
type Codec[V any] interface {
	// Append appends the bytes of v to dst and returns the extended buffer. It must not keep dst.
	Append(dst []byte, v V) ([]byte, error)

	// Decode returns the value of src. src is its own from then on: Decode may write to it, and the value may keep it.
	Decode(src []byte) (V, error)

	// Format names what the bytes are, schema included, such as "json" or "msgpack/2". Bytes stored under another
	// format are a miss and are loaded anew: an incompatible change needs a new name.
	Format() string
}

// DefaultCodec returns the codec of a namespace without one, for codecs that wrap it, such as to encrypt: string and []byte as they
// are, [JSON] for the rest.
func DefaultCodec[V any]() Codec[V] {
	for _, c := range []any{text{}, raw{}} {
		if c, ok := c.(Codec[V]); ok {
			return c
		}
	}
	return JSON[V]{}
}

// JSON uses encoding/json. Other languages read and write the same bytes with their JSON libraries. Built with GOEXPERIMENT=jsonv2, it uses
// encoding/json/v2, which decodes faster, by the same rules and to the same bytes.
type JSON[V any] struct {
	// Schema is a number to raise when V has changed so that old bytes must not be read any more. Zero is a number too.
	Schema int
}

// Validate returns an error if encoding/json cannot carry every V: it contains a channel, say, or has no exported field and would come back
// empty. [Namespace.Validate] calls it, as it calls the method Validate() error of any codec that has one.
func (JSON[V]) Validate() error {
	if err := check.JSON(reflect.TypeFor[V](), false); err != nil {
		return fmt.Errorf("JSON cannot carry a %v: %w: leave the field out by `json:\"-\"`, or use another codec", reflect.TypeFor[V](), err)
	}
	return nil
}

// Append appends v as JSON in one line, without escaping <, > and &.
func (JSON[V]) Append(dst []byte, v V) ([]byte, error) { return appendJSON(dst, v) }

// Decode parses src.
func (JSON[V]) Decode(src []byte) (v V, err error) {
	err = parseJSON(src, &v)
	return v, err
}

// Format is "json", or "json/3" with a Schema of 3.
func (c JSON[V]) Format() string {
	if c.Schema == 0 {
		return "json"
	}
	return fmt.Sprintf("json/%d", c.Schema)
}

// text stores strings as they are.
type text struct{}

func (text) Append(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil }
func (text) Decode(src []byte) (string, error)           { return string(src), nil }
func (text) Format() string                              { return "raw" }

// raw stores byte slices as they are; nil and empty are both empty. What Decode returns is the buffer itself.
type raw struct{}

func (raw) Append(dst, v []byte) ([]byte, error) { return append(dst, v...), nil }
func (raw) Decode(src []byte) ([]byte, error)    { return src, nil }
func (raw) Format() string                       { return "raw" }
