package rfc9111_test

import (
	"testing"

	"github.com/mayflycache/mayfly/internal/rfc9111"
	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

// RFC 9875.
func TestGroups(t *testing.T) {
	for field, want := range map[string][]string{
		`"a"`:              {"group http://h a"},
		`"a", "B b";x=1`:   {"group http://h a", "group http://h B b"},
		`a`:                nil, // a token is no string
		`"a", 1`:           nil,
		`("a" "b")`:        nil,
		`"a`:               nil,
		``:                 nil,
		`"\"quoted\", \\"`: {`group http://h "quoted", \`},
	} {
		if d := diff.Of(want, rfc9111.Groups("http://h/a/b?c", header("Cache-Groups: "+field))); d != "" {
			t.Errorf("%s%s", field, d)
		}
		if d := diff.Of(want, rfc9111.InvalidatedGroups("http://h/", "POST", header("Cache-Group-Invalidation: "+field))); d != "" {
			t.Errorf("voided by %s%s", field, d)
		}
	}
	if got := rfc9111.InvalidatedGroups("http://h/", "GET", header(`Cache-Group-Invalidation: "a"`)); got != nil {
		t.Errorf("a safe method voids %q", got)
	}
	if got := rfc9111.Groups("", header(`Cache-Groups: "a"`)); got != nil {
		t.Errorf("without an origin there are groups: %q", got)
	}
	if a, b := rfc9111.Group("http://h/x", "a"), rfc9111.Group("https://h/x", "a"); a == b {
		t.Errorf("two origins share %q", a)
	}
}
