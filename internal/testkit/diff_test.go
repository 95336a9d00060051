package testkit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

func ExampleOf() {
	fmt.Println(diff.Of(map[string]int{"a": 1, "b": 2}, map[string]int{"a": 1, "b": 3}))
	// Output:
	// want {"a":1, "b":2}
	//  got {"a":1, "b":3}
}

func TestDiff(t *testing.T) {
	for _, x := range []struct {
		want, got any
		shows     string
	}{
		{1, 1, ""},
		{[]string{"a"}, []string{"a"}, ""},
		{[]string(nil), []string{}, "(nil)"},
		{1, int64(1), "1"},
		{[]byte("\x00a"), []byte("\x00b"), `\x00b`},
		{strings.Repeat("x", 1000) + "a", strings.Repeat("x", 1000) + "b", `...` + strings.Repeat("x", 40) + `b"`},
	} {
		if got := diff.Of(x.want, x.got); (got == "") != (x.shows == "") || !strings.Contains(got, x.shows) {
			t.Errorf("%v and %v: %q, want %q in it", x.want, x.got, got, x.shows)
		}
	}
}
