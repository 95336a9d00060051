package engine

import (
	"strings"
	"testing"
)

func TestGlobRules(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "abc", true},
		{"*", "", false},
		{"", "", true},
		{"a*", "a", true},
		{"a**", "a", true},
		{"*a", "ba", true},
		{"a*c*e", "abcde", true},
		{"a*c*e", "abcd", false},
		{"h?llo", "hello", true},
		{"h?llo", "hllo", false},
		{"h[ae]llo", "hallo", true},
		{"h[^e]llo", "hello", false},
		{"h[a-c]", "hb", true},
		{"h[c-a]", "hb", true},
		{"h[a-", "h-", true},
		{"h[", "h[", false},
		{"h[^", "hx", true},
		{`h[\]]`, "h]", true},
		{`h\*`, "h*", true},
		{`h\*`, "hx", false},
		{`h\`, `h\`, true},
		{"abc", "abcd", false},
		{"abcd", "abc", false},
		{"h[]", "h]", false},
	} {
		if got := glob([]byte(c.pattern), []byte(c.s)); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

func TestGlobIsNotExponential(t *testing.T) {
	if glob([]byte(strings.Repeat("a*", 50)+"b"), []byte(strings.Repeat("a", 5000))) { // or this line is never left
		t.Error("there is no b")
	}
}
