package glob_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/glob"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

func Example() {
	p := glob.Compile([]byte("user:*:[0-9]?"))
	fmt.Println(p.Match([]byte("user:ada:42")), p.Match([]byte("user:ada:x2")))
	// Output: true false
}

func TestRules(t *testing.T) {
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
		{"*a?c*", "abbabc", true},
		{"*a?c*", "abbab", false},
		{"*[ab][bc]*d", "xxbcd", true},
		{"a*a", "a", false},
		{"ab*ba", "aba", false},
		{"*", "\x00\xff", true},
		{"*?", "a", true},
		{"*?*?*", "a", false},
	} {
		if got := glob.Match([]byte(c.pattern), []byte(c.s)); got != c.want {
			t.Errorf("glob(%q, %q) = %v", c.pattern, c.s, got)
		}
	}
}

// slow is the definition, used as an oracle: it tries every length for each star.
func slow(p, s string) bool {
	if len(p) > 0 && p[0] == '*' {
		return slow(p[1:], s) || len(s) > 0 && slow(p, s[1:])
	}
	if len(p) == 0 || len(s) == 0 {
		return len(p) == 0 && len(s) == 0
	}
	n := 1
	switch p[0] {
	case '[':
		for n = 2; n < len(p) && p[n-1] != ']'; n++ {
		}
	case '\\':
		n = min(2, len(p))
	}
	return glob.Match([]byte(p[:n]), []byte(s[:1])) && slow(p[n:], s[1:])
}

// FuzzMatch compares with the definition, where that finishes soon.
func FuzzMatch(f *testing.F) {
	for _, p := range []string{"", "*", "a*b", "*a?b*", "[a-c]*[^b]", `\**`, "*ab*?*a", "[", "*[a-b]?[ab]*b"} {
		f.Add(p, "abcab")
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		got := glob.Match([]byte(pattern), []byte(s))
		if len(pattern) > 12 || len(s) > 12 || strings.ContainsAny(pattern, `[\`) {
			return
		}
		want := slow(pattern, s)
		if s == "" {
			want = pattern == ""
		}
		if got != want {
			t.Errorf("Match(%q, %q) = %v", pattern, s, got)
		}
	})
}

// Pieces of more than 64 positions use several words.
func TestLongPieces(t *testing.T) {
	for _, n := range []int{63, 64, 65, 127, 128, 129, 200} {
		p := glob.Compile([]byte("*" + strings.Repeat("?", n-1) + "b*"))
		short, long := strings.Repeat("a", n-2), strings.Repeat("a", n-1)
		if p.Match([]byte(short+"bc")) || !p.Match([]byte(long+"b")) || !p.Match([]byte("aaaa"+long+"bccc")) {
			t.Errorf("%d places", n)
		}
	}
}

// Patterns that made other matchers take minutes, or the age of the universe.
func TestNoPatternTakesLong(t *testing.T) {
	effort.Alone(t)
	began := time.Now()
	n := effort.Times(10_000, 50_000)
	a := func(n int) string { return strings.Repeat("a", n) }
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{strings.Repeat("a*", 50) + "b", a(50), false}, // Redis's "long nested loops"
		{strings.Repeat("*?", n), a(n), true},          // its "very long nested loops"
		{strings.Repeat("*?", n), a(n - 1), false},
		{strings.Repeat("*a", n) + "b", a(n), false},
		{"*" + a(n/2) + "b*", a(n), false},
		{"*" + a(n/20) + "?b*", a(n), false},
		{"*[" + a(n) + "]b*", a(n), false},
		{strings.Repeat("*[a-z][a-z]", n/3) + "b*", a(n), false},
	} {
		if got := glob.Match([]byte(c.pattern), []byte(c.s)); got != c.want {
			t.Errorf("%.20q of %d bytes: %v", c.pattern, len(c.pattern), got)
		}
	}
	if took := time.Since(began); took > time.Minute { // about 50 ms; by trying all, days
		t.Errorf("took %v", took)
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	p, name := glob.Compile([]byte("user:*:[0-9]?*x*y")), bytes.Repeat([]byte("user:12x3y"), 3)
	if n := testing.AllocsPerRun(100, func() { p.Match(name) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
