package ttlaudit_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/ttlaudit"
)

func TestPatternsOfKeys(t *testing.T) {
	for key, want := range map[string]string{
		"cache:user:1001":                              "cache:user:*",
		"cache:user:1001:profile":                      "cache:user:*:profile",
		"session:550e8400-e29b-41d4-a716-446655440000": "session:*",
		"session:9f86d081884c7d659a2feaa0c55ad015":     "session:*",
		"token:eyJhbGciOiJIUzI1NiIsInR5cCI6":           "token:*",
		"page:/products/1234/reviews":                  "page:/products/*/reviews",
		"{user:1001}:cart":                             "{user:*}:cart",
		"{1001}.following":                             "{*}.following",
		"report:2026-11-21":                            "report:*",
		"cache:v2:user:7":                              "cache:v2:user:*",
		"item-7":                                       "item-*",
		"user1001|mail":                                "user*|mail",
		"config":                                       "config",
		"config:feature_flags":                         "config:feature_flags",
		"bee:cafe":                                     "bee:cafe",
		"":                                             "",
		"a::b":                                         "a::b",
		"a:b:c:d:e:f:g:h":                              "a:b:c:d:e:**",
		"a:b:c:d:e:f":                                  "a:b:c:d:e:f",
		"50%*off":                                      `50%\*off`,
		"x:" + strings.Repeat("y", 60):                 "x:*",
		"été:日本":                                       "été:日本",
		"geo:52.52,13.40":                              "geo:*",
		string([]byte{0xff, 0xfe, ':', '1'}):           "\xff\xfe:*",
	} {
		got := ttlaudit.Patterns([]string{key}, 100)
		if len(got) != 1 || got[want] != 1 {
			t.Errorf("%q: %v, not %q", key, got, want)
		}
		if !ttlaudit.Fits(want, key) {
			t.Errorf("%q does not fit its pattern %q", key, want)
		}
	}
}

// Names are ids where there are many of them.
func TestManyNamesAreFolded(t *testing.T) {
	keys := []string{"user:", "app:a:x", "app:b:x"}
	for i := range 200 {
		keys = append(keys, "user:"+name(i), "mail:"+name(i)+":inbox")
	}
	got := ttlaudit.Patterns(keys, 100)
	want := map[string]int64{"user:": 1, "user:*": 200, "mail:*:inbox": 200, "app:a:x": 1, "app:b:x": 1}
	if !maps.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func name(i int) string {
	return string([]byte{'a' + byte(i%26), 'a' + byte(i/26%26), 'n' + byte(i/676%13), 'z'})
}

// The patterns do not depend on the order of the keys, are never more than allowed, and each key fits one; none is lost.
func TestPatternsOfAnyKeys(t *testing.T) {
	effort.Alone(t)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	parts := []string{"user", "cache", "v2", "x1y2", "", "*", "12", "a*b", `a\`, "{7}", "é", "list"}
	for round := 0; round < 260; round += effort.Times(37, 1) { // every other size
		var keys []string
		for range 1 + r.IntN(600) {
			var b strings.Builder
			for range 1 + r.IntN(8) {
				if r.IntN(3) == 0 {
					b.WriteString(name(r.IntN(1 << (1 + round%13))))
				} else {
					b.WriteString(parts[r.IntN(len(parts))])
				}
				b.WriteByte(":/|"[r.IntN(3)])
			}
			keys = append(keys, strings.TrimRight(b.String(), "|"))
		}
		first := ttlaudit.Patterns(keys, 1<<20)
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		if second := ttlaudit.Patterns(keys, 1<<20); !maps.Equal(first, second) {
			t.Fatalf("in another order: %.500v\n%.500v", first, second)
		}
		const most = 1500 // of what the parts alone can make in the end, with a fan-out of 1
		if first = ttlaudit.Patterns(keys, most); len(first) > most {
			t.Fatalf("%d patterns", len(first))
		}
		sum := int64(0)
		for _, n := range first {
			sum += n
		}
		if sum != int64(len(keys)) {
			t.Fatalf("%d keys of %d", sum, len(keys))
		}
		names := slices.Collect(maps.Keys(first))
		for _, key := range keys {
			if !slices.ContainsFunc(names, func(p string) bool { return ttlaudit.Fits(p, key) }) {
				t.Fatalf("%q fits none of %.300q", key, names)
			}
		}
	}
	var keys []string
	for i := range 5000 {
		keys = append(keys, fmt.Sprintf("%s:%s:%s", name(i%100), name(i%97), name(i%31)))
	}
	if n := len(ttlaudit.Patterns(keys, 100)); n > 100 {
		t.Errorf("%d patterns", n)
	}
}

func TestFits(t *testing.T) {
	for _, test := range []struct {
		pattern, key string
		fits         bool
	}{
		{"cache:user:*", "cache:user:1001", true},
		{"cache:user:*", "cache:user:1001:profile", false},
		{"cache:user:*", "cache:user:a/b", false},
		{"cache:user:*", "cache:users:1", false},
		{"cache:**", "cache:a:b:c", true},
		{"cache:**", "cache:", false},
		{"{user:*}:cart", "{user:7}:cart", true},
		{`a\*`, "a*", true},
		{`a\*`, "ab", false},
		{"item-*-x", "item-1-2-x", true},
		{"a", "ab", false},
		{"ab", "a", false},
		{"*:b", "a:b", true},
	} {
		if got := ttlaudit.Fits(test.pattern, test.key); got != test.fits {
			t.Errorf("%q and %q: %v", test.pattern, test.key, got)
		}
	}
}

// slowlyFits is what a pattern means, in its plainest form.
func slowlyFits(pattern, key string) bool {
	for len(pattern) > 0 {
		switch {
		case pattern == "**":
			return key != ""
		case pattern[0] == '*':
			part := strings.IndexAny(key, ":/|")
			if part < 0 {
				part = len(key)
			}
			for n := range part + 1 {
				if slowlyFits(pattern[1:], key[n:]) {
					return true
				}
			}
			return false
		case pattern[0] == '\\' && len(pattern) > 1:
			pattern = pattern[1:]
		}
		if key == "" || key[0] != pattern[0] {
			return false
		}
		pattern, key = pattern[1:], key[1:]
	}
	return key == ""
}

func TestFitsMeansWhatItMeant(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	some := func(letters string, most int) string {
		text := make([]byte, r.IntN(most))
		for i := range text {
			text[i] = letters[r.IntN(len(letters))]
		}
		return string(text)
	}
	fit := 0
	for range 40_000 {
		pattern, key := strings.ReplaceAll(some(`aab*:/\-`, 8), "**", "*"), some(`aab*:/\-`, 7)
		if r.IntN(4) == 0 {
			pattern = strings.TrimSuffix(pattern, "*") + "**"
		}
		want := slowlyFits(pattern, key)
		if want {
			fit++
		}
		if got := ttlaudit.Fits(pattern, key); got != want {
			t.Fatalf("%q and %q: %v, want %v", pattern, key, got, want)
		}
	}
	if fit < 200 {
		t.Errorf("%d fit", fit)
	}
}

// No pattern and no key keep a fix, or an audit, busy: neither dashes without end, nor braces.
func TestKeysThatWereMadeToBeSlow(t *testing.T) {
	begun := time.Now()
	for _, filling := range []string{"-", "a", "-x", "{}", "{", ":", "1a", "\\*"} {
		key := "cache:" + strings.Repeat(filling, 64<<10/len(filling))
		for _, pattern := range []string{"cache:*-*-*x", "cache:" + strings.Repeat("*a", 50) + "b", strings.Repeat("*:", 50) + "**", "cache:*-*-*-**"} {
			ttlaudit.Fits(pattern, key)
		}
		ttlaudit.Patterns([]string{key}, 10)
	}
	if took := time.Since(begun); took > 20*time.Second { // 50 ms; by trying all, days
		t.Errorf("it took %v", took)
	}
}

// An interval holds the truth about 19 times of 20.
func TestIntervals(t *testing.T) {
	effort.Alone(t)
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const rounds = 500
	shares, sums := 0, 0
	for range rounds {
		all := 1000 + r.IntN(9000)
		have := r.IntN(all + 1)
		n := 200 + r.IntN(all/2)
		hits, sizes := int64(0), []float64{}
		truth := 0.0
		size := func(i int) float64 { return float64(50 + i%400) }
		for i := range all {
			truth += size(i)
		}
		for _, i := range r.Perm(all)[:n] {
			if i < have {
				hits++
			}
			sizes = append(sizes, size(i))
		}
		if e := ttlaudit.Proportion(hits, int64(n), int64(all)); e.Low <= int64(have) && int64(have) <= e.High {
			shares++
		}
		if e := ttlaudit.Total(sizes, int64(all)); float64(e.Low) <= truth && truth <= float64(e.High) {
			sums++
		}
	}
	for what, n := range map[string]int{"share": shares, "sum": sums} {
		if got := float64(n) / rounds; got < 0.9 || got > 0.998 {
			t.Errorf("the interval of a %s holds the truth in %.1f %%", what, 100*got)
		}
	}
	if e := ttlaudit.Proportion(3, 10, 10); e != (ttlaudit.Estimate{Value: 3, Low: 3, High: 3}) || !e.Exact() {
		t.Errorf("all was seen: %v", e)
	}
	if e := ttlaudit.Proportion(0, 100, 1000); e.Low != 0 || e.High < 10 || e.High > 60 {
		t.Errorf("none in a tenth: %v", e)
	}
}
