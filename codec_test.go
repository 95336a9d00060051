package mayfly_test

import (
	"bytes"
	"testing"

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
