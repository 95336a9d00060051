package rfc9111_test

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// RFC 9110, section 12.5.5; RFC 9111, section 4.1.
func TestParseVary(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprint("X-", i)
	}
	for _, x := range []struct {
		lines []string
		want  string // "*": matches nothing
	}{
		{nil, ""},
		{[]string{"Vary: "}, ""},
		{[]string{"Vary: accept-encoding"}, "Accept-Encoding"},
		{[]string{"Vary: Foo, bar,, FOO", "Vary: Baz"}, "Bar Baz Foo"},
		{[]string{"Vary: *"}, "*"},
		{[]string{"Vary: *, *"}, "*"},
		{[]string{"Vary: *", "Vary: *"}, "*"},
		{[]string{"Vary: , *"}, "*"},
		{[]string{"Vary: ", "Vary: *"}, "*"},
		{[]string{"Vary: *, Foo"}, "*"},
		{[]string{"Vary: Foo, *"}, "*"},
		{[]string{"Vary: Foo", "Vary: *"}, "*"},
		{[]string{"Vary: a b"}, "*"},
		{[]string{"Vary: \"a\""}, "*"},
		{[]string{"Vary: " + strings.Join(many, ",")}, "*"},
		{[]string{"Vary: " + strings.Repeat("a,", 1000)}, "A"},
	} {
		fields, ok := rfc9111.ParseVary(header(x.lines...))
		if got := strings.Join(fields, " "); ok == (x.want == "*") || ok && got != x.want {
			t.Errorf("%q: %q %v, want %q", x.lines, got, ok, x.want)
		}
	}
}

// Which requests are for one variant: RFC 9111, section 4.1.
func TestVariant(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, x := range []struct {
		name string
		vary string
		a, b []string
		same bool
	}{
		{"the same", "Foo", []string{"Foo: 1"}, []string{"Foo: 1"}, true},
		{"another value", "Foo", []string{"Foo: 1"}, []string{"Foo: 2"}, false},
		{"absent is not empty", "Foo", nil, []string{"Foo: "}, false},
		{"absent is not anything", "Foo", nil, []string{"Foo: 1"}, false},
		{"both absent", "Foo, Bar", []string{"Bar: 1"}, []string{"Bar: 1"}, true},
		{"what does not select", "Foo", []string{"Foo: 1", "Other: 2"}, []string{"Foo: 1", "Other: 3"}, true},
		{"values do not change places", "Foo, Bar", []string{"Foo: 1", "Bar: 2"}, []string{"Foo: 2", "Bar: 1"}, false},
		{"nor run into each other", "Foo, Bar", []string{"Foo: 1", "Bar: 23"}, []string{"Foo: 12", "Bar: 3"}, false},
		{"nor by what looks like a boundary", "Bar, Foo", []string{"Bar: x+:y", "Foo: z"}, []string{"Bar: x", "Foo: y+:z"}, false},
		{"nor by what looks like another", "Bar, Foo", []string{"Bar: 1-", "Foo: "}, []string{"Bar: 1"}, false},
		{"lines are one list", "Foo", []string{"Foo: 1, 2"}, []string{"Foo: 1", "Foo: 2"}, true},
		{"whitespace about commas", "Foo", []string{"Foo: 1,2"}, []string{"Foo:  1 ,\t2 "}, true},
		{"whitespace elsewhere folds", "Foo", []string{"Foo: a  b"}, []string{"Foo: a \t b"}, true},
		{"but does not go", "Foo", []string{"Foo: a b"}, []string{"Foo: ab"}, false},
		{"quoted it is text", "Foo", []string{`Foo: "a,  b"`}, []string{`Foo: "a, b"`}, false},
		{"case counts", "Foo", []string{"Foo: A"}, []string{"Foo: a"}, false},
		{"order counts", "Foo", []string{"Foo: a, b"}, []string{"Foo: b, a"}, false},
		{"long ones", "Foo", []string{"Foo: " + long + "1"}, []string{"Foo: " + long + "2"}, false},
		{"long ones, the same", "Foo", []string{"Foo: " + long}, []string{"Foo: " + long}, true},

		{"languages in another order: a handler may take the first (RFC 9110, 12.5.4)", "Accept-Language", []string{"Accept-Language: en, de"}, []string{"Accept-Language: de, en"}, false},
		{"by weight, where that differs", "Accept-Language", []string{"Accept-Language: en;q=0.1, de"}, []string{"Accept-Language: de, en;q=0.1"}, true},
		{"of equal weight among others", "Accept-Language", []string{"Accept-Language: fr;q=0.1, en;q=0.5, de;q=0.5"}, []string{"Accept-Language: de;q=0.5, en;q=0.5, fr;q=0.1"}, false},
		{"codings in another order", "Accept-Encoding", []string{"Accept-Encoding: gzip, br"}, []string{"Accept-Encoding: br, gzip"}, true},
		{"languages in another case", "Accept-Language", []string{"Accept-Language: en, de"}, []string{"Accept-Language: eN, De"}, true},
		{"languages, spaced", "Accept-Language", []string{"Accept-Language: en, de"}, []string{"Accept-Language:  en ,   de"}, true},
		{"weights, spelled otherwise", "Accept-Language", []string{"Accept-Language: en;q=1.0, de;q=0.50"}, []string{"Accept-Language: de; q=0.5, en"}, true},
		{"other weights", "Accept-Language", []string{"Accept-Language: en;q=0.1, de"}, []string{"Accept-Language: en;q=0.2, de"}, false},
		{"weight 0 excludes", "Accept-Encoding", []string{"Accept-Encoding: gzip, br;q=0"}, []string{"Accept-Encoding: gzip"}, false},
		{"what is no weight stands for itself", "Accept-Language", []string{"Accept-Language: en;q=2"}, []string{"Accept-Language: en"}, false},
		{"nor is another parameter", "Accept-Language", []string{"Accept-Language: en;x=0.5"}, []string{"Accept-Language: en;q=0.5"}, false},
		{"codings twice", "Accept-Encoding", []string{"Accept-Encoding: gzip, GZIP, br"}, []string{"Accept-Encoding: br,gzip"}, true},
		{"other codings", "Accept-Encoding", []string{"Accept-Encoding: gzip"}, []string{"Accept-Encoding: br"}, false},
		{"no coding is not any", "Accept-Encoding", []string{"Accept-Encoding: "}, nil, false},
	} {
		fields, _ := rfc9111.ParseVary(header("Vary: " + x.vary))
		a, b := rfc9111.Variant(fields, selectors(x.a...)), rfc9111.Variant(fields, selectors(x.b...))
		if (a == b) != x.same || len(a) > 200 {
			t.Errorf("%s: %.80q %.80q", x.name, a, b)
		}
	}
	languages := []string{"Accept-Language"}
	one, other := selectors("Accept-Language: en, de, en"), selectors("Accept-Language: de, en")
	one.AnyOrder, other.AnyOrder = true, true
	if a, b := rfc9111.Variant(languages, one), rfc9111.Variant(languages, other); a != b {
		t.Errorf("languages whose order does not count: %q %q", a, b)
	}
	if got := rfc9111.Variant(nil, selectors("Foo: 1")); got != "" {
		t.Errorf("what does not vary: %q", got)
	}
}

func selectors(lines ...string) rfc9111.Selectors { return rfc9111.Selectors{Header: header(lines...)} }

// Two selections meet only if each field says the same but for whitespace, case and order.
func FuzzVariant(f *testing.F) {
	f.Add("1", "2", "12", "", true, true)
	f.Add("+1:a", "-", "a", "\"", false, true)
	f.Fuzz(func(t *testing.T, a1, a2, b1, b2 string, hasA, hasB bool) {
		fields := []string{"A", "Accept-Language", "B"}
		make := func(x, y string, has bool) http.Header {
			h := http.Header{"A": {x}, "Accept-Language": {y}}
			if has {
				h["B"] = []string{x, y}
			}
			return h
		}
		a, b := make(a1, a2, hasA), make(b1, b2, hasB)
		one, other := rfc9111.Variant(fields, rfc9111.Selectors{Header: a}), rfc9111.Variant(fields, rfc9111.Selectors{Header: b})
		if reflect.DeepEqual(a, b) && one != other {
			t.Errorf("%v is %q and %q", a, one, other)
		}
		squeeze := func(s string) string { // all that may be folded, and more
			return strings.NewReplacer(" ", "", "\t", "").Replace(s)
		}
		if one == other && (hasA != hasB || squeeze(a1) != squeeze(b1)) {
			t.Errorf("%q and %q meet in %q", a, b, one)
		}
	})
}

func containsAny(s string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
