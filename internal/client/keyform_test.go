package client_test

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/client/keyform"
)

type (
	name  string
	id    int32
	badge uint16
	place struct{ x, y int }
	tag   struct{ text string }
	bad   struct{}
)

func (t tag) MarshalText() ([]byte, error) { return []byte("tag-" + t.text), nil }
func (bad) MarshalText() ([]byte, error)   { return nil, errors.New("cannot be told") }

func text[K any](t *testing.T, key K) string {
	t.Helper()
	form, err := keyform.Of[K](nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := form([]byte("p:"), key)
	if err != nil {
		t.Fatalf("%#v: %v", key, err)
	}
	return string(got)
}

func TestForms(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{text(t, "a b\x00{c}"), "p:a b\x00{c}"},
		{text(t, name("n")), "p:n"},
		{text(t, 7), "p:7"},
		{text(t, int64(math.MinInt64)), "p:-9223372036854775808"},
		{text(t, uint64(math.MaxUint64)), "p:18446744073709551615"},
		{text(t, int8(-1)), "p:-1"},
		{text(t, id(42)), "p:42"},
		{text(t, badge(65535)), "p:65535"},
		{text(t, uintptr(9)), "p:9"},
		{text(t, tag{"x"}), "p:tag-x"},
		{text(t, &tag{"x"}), "p:tag-x"},
		{text(t, netip.MustParseAddr("::1")), "p:::1"},
		{text(t, time.Unix(0, 0).UTC()), "p:1970-01-01T00:00:00Z"},
		{text(t, time.Second), "p:1000000000"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestCustomDecides(t *testing.T) {
	form, err := keyform.Of(func(p place) string { return strings.Repeat("x", p.x) })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := form(nil, place{3, 0}); string(got) != "xxx" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := form([]byte("p:"), place{}); !errors.Is(err, keyform.ErrEmpty) || string(got) != "p:" {
		t.Errorf("an empty text: got %q, %v; want the buffer as it was and ErrEmpty", got, err)
	}
}

func TestTypesWithoutAForm(t *testing.T) {
	check := func(what string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one with %q", what, err, want)
		}
	}
	_, err := keyform.Of[place](nil)
	check("struct", err, "client_test.place has no text: give it a MarshalText method or set Namespace.Key")
	_, err = keyform.Of[float64](nil)
	check("float", err, "float64")
	_, err = keyform.Of[bool](nil)
	check("bool", err, "bool")
	_, err = keyform.Of[any](nil)
	check("any", err, "interface {}")
	_, err = keyform.Of[[2]int](nil)
	check("array", err, "[2]int")
}

func TestKeysThatCannotBeTold(t *testing.T) {
	strs, _ := keyform.Of[string](nil)
	if _, err := strs([]byte("p:"), ""); !errors.Is(err, keyform.ErrEmpty) {
		t.Errorf("empty string: %v", err)
	}
	ptrs, _ := keyform.Of[*tag](nil)
	if _, err := ptrs(nil, nil); !errors.Is(err, keyform.ErrEmpty) {
		t.Errorf("nil pointer: %v", err)
	}
	bads, _ := keyform.Of[bad](nil)
	if _, err := bads(nil, bad{}); err == nil || err.Error() != "cannot be told" {
		t.Errorf("MarshalText's own error: %v", err)
	}
}

func TestAllocatesNothing(t *testing.T) {
	ints, _ := keyform.Of[int64](nil)
	strs, _ := keyform.Of[string](nil)
	ids, _ := keyform.Of[id](nil)
	buf := make([]byte, 0, 64)
	for name, f := range map[string]func(){
		"int64":           func() { ints(buf, 1<<40) },
		"string":          func() { strs(buf, "some key") },
		"a named integer": func() { ids(buf, 1<<30) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
