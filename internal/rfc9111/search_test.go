package rfc9111_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// The examples of draft-ietf-httpbis-no-vary-search, section 4, and what it does not name: whatever is not understood counts wholly.
func TestParseSearch(t *testing.T) {
	for field, want := range map[string]string{
		`params`:                          "+",
		`params=?1`:                       "+",
		`params=("a")`:                    "- a",
		`params=("b" "a" "b");x=1`:        "- a b",
		`params, except=("x")`:            "+ x",
		`params;p=1, except=("x";q=2)`:    "+ x",
		`params, except=()`:               "+",
		`key-order`:                       "-o",
		`key-order=?1`:                    "-o",
		`params, key-order, except=("x")`: "+o x",
		`key-order, params=("a")`:         "-o a",
		`key-order, other=(1 2)`:          "-o",
		`params=("%C3%A9+%E6%B0%97")`:     "- é 気",
		`params=("a%zz" "%")`:             "- % a%zz",
		`params=("a"), params=("b")`:      "- b",

		`params=?0`: "", `params=()`: "", `key-order=?0`: "", ``: "",
		`unknown-key`: "", `key-order="not a boolean"`: "", `key-order=1, params`: "", `key-order=(), params`: "",
		`params="not a boolean or inner list"`: "", `params=(not-a-string)`: "", `params=("a" 1)`: "", `params=:YQ==:`: "",
		`params=("a"), except=("x")`: "", `params=(), except=()`: "", `params=?0, except=("x")`: "",
		`params, except=(not-a-string)`: "", `params, except="not an inner list"`: "", `params, except=?1`: "",
		`except=("x")`: "", `except=()`: "",
		`params, `: "", `Params`: "", `params=("a`: "", `params, é`: "", `*`: "",
		`params=(` + strings.Repeat(`"a" `, 2000) + `)`: "",
	} {
		s := rfc9111.ParseSearch(header("No-Vary-Search: " + field))
		if got := strings.Join(s.Texts(), " "); got != want {
			t.Errorf("%.60s: %q, want %q", field, got, want)
		}
		if again, ok := rfc9111.SearchOf(s.Texts()); !ok || !again.Equal(s) || s.Counts() != (want == "") {
			t.Errorf("%.60s: %v is read as %v, %v", field, s, again, ok)
		}
	}
	several := rfc9111.ParseSearch(header("No-Vary-Search: key-order", `No-Vary-Search: params=("a")`))
	if got := several.Texts(); !slices.Equal(got, []string{"-o", "a"}) {
		t.Errorf("two lines: %q", got)
	}
	many := make([]string, 65)
	for i := range many {
		many[i] = `"` + strings.Repeat("x", i) + `"`
	}
	if s := rfc9111.ParseSearch(header("No-Vary-Search: params=(" + strings.Join(many, " ") + ")")); !s.Counts() {
		t.Error("65 names are too many")
	}
	if _, ok := rfc9111.SearchOf([]string{"?"}); ok {
		t.Error("what no Texts returns was read")
	}
}

// Which queries are one: each line has those that are, and two of different lines are not. Section 5 has some of them.
func TestSameSearch(t *testing.T) {
	for field, lines := range map[string][]string{
		`key-order`: {
			" ? ?&& ?&", "?a=x ?%61=%78 ?a=x&&&&", "?a=é ?a=%C3%A9 ?a=%c3%a9", "?a= ?a ?a&", "?a=%20 ?a=+",
			"?a=1&b=2&c=3 ?c=3&b=2&a=1", "?a=1&a=2 ?&a=1&a=2", "?a=2&a=1", "?b=1&a=1&b=2 ?b=1&b=2&a=1", "?b=2&b=1&a=1",
			"?a=%f6", "?a=%f7", "?a=%ef%bf%bd", "?a=%zz", "?a=%25zz", "?a=100%", "?a=100%25", "?a=%4", "?%&a=1", "?a=1&%", "?%25&a=1", "?a=1;b=2", "?b=2&a=1;b=2", "?a=1%3Bb=2", "?=1", "?1", "?a%3D1 ?a%3d1=", "?a=b%26c=d", "?a=b&c=d ?c=d&a=b",
		},
		`params=("utm" "%C3%A9+%E6%B0%97")`: {
			"?a=1 ?a=1&utm=2 ?utm&a=1 ?%75tm=7&a=1 ?a=1&%C3%A9+%E6%B0%97=4 ?%C3%A9%20気=3&a=1&é+気=2", "?a=1&utm2=1", "?a=1&b=1", "?b=1&a=1", "?a=1&UTM=1",
			"?utm=1 ?utm=2 ", "?a=1;utm=1", "?utm=1;a=1", "?utm=2;a=1", "?utm=1&callback=evil", "?utm=1;callback=evil",
			"?a=1&utm=%", "?a=1&utm=%2", "?a=1&utm=%zz", "?utm=%&a=1",
		},
		`params`:               {" ? ?a=1 ?b=2 ?%25zz", "?%zz", "?a=1;b=2"},
		`params, except=("q")`: {"?q=1 ?q=1&a=2 ?b=2&%71=1 ?utm=3&q=1", "?q=2", "?q=1&q=2", "?q=2&q=1", " ?a ?q%00=1", "?q ?q="},
		`params=?0`:            {"", "?", "?a=1&b=2", "?b=2&a=1", "?a=1&&b=2", "?a=%31&b=2"},
	} {
		s := rfc9111.ParseSearch(header("No-Vary-Search: " + field))
		of := map[string]int{}
		for i, line := range lines {
			for _, query := range strings.Split(line, " ") {
				same := s.Same(query)
				if j, seen := of[same]; seen && j != i {
					t.Errorf("%s: %q is one with %q", field, query, lines[j])
				} else if of[same] = i; s.Same(query) != s.Same(strings.Split(line, " ")[0]) {
					t.Errorf("%s: %q is not one with the others of %q", field, query, line)
				}
			}
		}
	}
}

// No text is the query of another: what is stored under one is found under it only.
func FuzzSearch(f *testing.F) {
	f.Add(`params, except=("q")`, "?q=1&a=2", "?q=1")
	f.Add(`key-order`, "?a=%f6", "?a=%ef%bf%bd")
	f.Fuzz(func(t *testing.T, field, a, b string) {
		s := rfc9111.ParseSearch(header("No-Vary-Search: " + field))
		if again, ok := rfc9111.SearchOf(s.Texts()); !ok || !again.Equal(s) {
			t.Fatalf("%q is read as %v", s.Texts(), again)
		}
		if strings.HasPrefix(a, "?") && a != "" && s.Same("?"+s.Same(a)[1:]) != s.Same(a) && s.Same(a) != a {
			t.Errorf("%q: the normal form of %q has another", field, a)
		}
		if s.Counts() && a != b && s.Same(a) == s.Same(b) {
			t.Errorf("%q and %q are one", a, b)
		}
	})
}
