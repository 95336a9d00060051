package mayfly_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
)

func roundTrip[V any](t *testing.T, v V, want string) V {
	t.Helper()
	codec := mayfly.DefaultCodec[V]()
	got, err := codec.Append([]byte("head "), v)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != "head "+want {
		t.Errorf("Append gave %q, want %q", got, "head "+want)
	}
	back, err := codec.Decode(got[len("head "):])
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestDefaultCodec(t *testing.T) {
	if got := roundTrip(t, "a \x00 b", "a \x00 b"); got != "a \x00 b" {
		t.Errorf("string came back as %q", got)
	}
	if got := roundTrip(t, []byte{0, 1}, "\x00\x01"); !bytes.Equal(got, []byte{0, 1}) {
		t.Errorf("bytes came back as %v", got)
	}
	if got := roundTrip(t, user{"<Ada> & co"}, `{"Name":"<Ada> & co"}`); got != (user{"<Ada> & co"}) {
		t.Errorf("struct came back as %+v", got)
	}
	if got := roundTrip(t, (*user)(nil), `null`); got != nil {
		t.Errorf("nil came back as %+v", got)
	}
	if got := roundTrip(t, 7, `7`); got != 7 {
		t.Errorf("int came back as %v", got)
	}
}

func TestACodecThatRefuses(t *testing.T) {
	dst := []byte("kept")
	got, err := mayfly.DefaultCodec[chan int]().Append(dst, nil)
	if err == nil || string(got) != "kept" {
		t.Errorf("a channel as JSON: got %q, %v; want the buffer as it was and an error", got, err)
	}
	if _, err := mayfly.DefaultCodec[user]().Decode([]byte("{")); err == nil {
		t.Error("half a JSON object decodes")
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{mayfly.DefaultCodec[string]().Format(), "raw"},
		{mayfly.DefaultCodec[[]byte]().Format(), "raw"},
		{mayfly.DefaultCodec[user]().Format(), "json"},
		{mayfly.JSON[user]{Schema: 2}.Format(), "json/2"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestPassThroughAllocatesNothing(t *testing.T) {
	buf, codec := make([]byte, 0, 64), mayfly.DefaultCodec[[]byte]()
	value := []byte("some value")
	if n := testing.AllocsPerRun(1000, func() {
		out, _ := codec.Append(buf, value)
		codec.Decode(out)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// However the program was built, JSON has the bytes and the rules of encoding/json: see codec_jsonv2.go.
func TestJSONIsThatOfEncodingJSON(t *testing.T) {
	type inner struct {
		Text  string `json:"text,omitempty"`
		Count int    `json:",string"`
	}
	type outer struct {
		inner
		List  []int
		Map   map[string]int
		Raw   []byte
		Time  time.Time
		For   time.Duration
		Ptr   *inner `json:",omitempty"`
		Any   any
		Float float64
	}
	for _, v := range []outer{
		{},
		{inner: inner{Text: "<b>&\u2028\xff", Count: 3}, List: []int{}, Map: map[string]int{"b": 1, "a": 2}, Raw: []byte{0, 255},
			Time: time.Unix(1, 5).UTC(), For: time.Second, Ptr: &inner{}, Any: []any{1.5, nil, "x", map[string]any{}}, Float: 1e21},
	} {
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		got, err := mayfly.JSON[outer]{}.Append([]byte("head "), v)
		if err != nil || "head "+want.String() != string(got)+"\n" {
			t.Errorf("got %q, %v, want %q", got, err, want.String())
		}
	}
	for _, text := range []string{
		`{"list":[1],"MAP":{"a":1},"unknown":{}}`, `{"List":[1],"List":[2]}`, `{"Raw":null,"Ptr":{"text":"x"}}`, `{"text":"` + "\xff" + `"}`,
		`{"Count":"7"}`, `{"Count":7}`, `null`, ` {} `, `{} {}`, `[1]`, `{"Float":1e999}`, ``, `{"For":"1s"}`,
	} {
		var want outer
		wrong := json.Unmarshal([]byte(text), &want)
		got, err := mayfly.JSON[outer]{}.Decode([]byte(text))
		if (err == nil) != (wrong == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v, %v", text, got, err, want, wrong)
		}
	}
}
