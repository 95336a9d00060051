package fieldttl_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

type holders struct {
	One    any            `redis:"one"`
	List   []any          `redis:"list"`
	Map    map[string]any `redis:"map"`
	Struct struct {
		Any  any
		Next *struct{ Any any }
	} `redis:"struct"`
	Maps   map[string]struct{ Any any } `redis:"maps"`
	Itself json.RawMessage              `redis:"itself"`
}

// No number that an any holds loses a digit.
func TestNumbersInAny(t *testing.T) {
	s := expect.Value(fieldttl.New(ns[holders](t, redistest.Start(t).Client()), fieldttl.Options{RedisTimeout: patient}))(t)
	for set, want := range map[any]any{
		int64(1<<60 + 1): int64(1<<60 + 1), int64(-1 << 63): float64(-1 << 63), int64(-1<<63 + 1): int64(-1<<63 + 1), int64(1<<63 - 1): int64(1<<63 - 1),
		uint64(1<<64 - 1): uint64(1<<64 - 1), uint64(1 << 63): float64(1 << 63),
		json.Number("123456789012345678901234567890"): json.Number("123456789012345678901234567890"), json.Number("1e400"): json.Number("1e400"),
		1.5: 1.5, 7: 7.0, "text": "text", true: true, json.Number("1e3"): 1000.0, int64(1 << 60): float64(1 << 60),
	} {
		var v, w holders
		v.One, w.One = set, want
		v.List, w.List = []any{set, []any{set}}, []any{want, []any{want}}
		v.Map, w.Map = map[string]any{"a": set, "b": map[string]any{"c": set}}, map[string]any{"a": want, "b": map[string]any{"c": want}}
		v.Struct.Any, w.Struct.Any = set, want
		v.Struct.Next, w.Struct.Next = &struct{ Any any }{set}, &struct{ Any any }{want}
		v.Maps, w.Maps = map[string]struct{ Any any }{"a": {set}}, map[string]struct{ Any any }{"a": {want}}
		v.Itself, w.Itself = json.RawMessage("[1]"), json.RawMessage("[1]")
		expect.OK(t, s.Set(t.Context(), "a", v))
		if e := expect.Value(s.Get(t.Context(), "a"))(t); !reflect.DeepEqual(e.Value, w) {
			t.Errorf("%T %v: got %#v, want %#v", set, set, e.Value, w)
		}
	}
}
