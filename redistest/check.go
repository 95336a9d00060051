package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DumpMaxLineLen is the length to which Dump cuts values.
var DumpMaxLineLen = 60

// T is what CheckGet and CheckList need of a test.
type T interface {
	Helper()
	Errorf(string, ...any)
}

// CheckGet fails the test unless the string is as expected.
func (s *Server) CheckGet(t T, key, expected string) {
	t.Helper()
	switch found, err := s.Get(key); {
	case err != nil:
		t.Errorf("GET error, key %#v: %v", key, err)
	case found != expected:
		t.Errorf("GET error, key %#v: Expected %#v, got %#v", key, expected, found)
	}
}

// CheckList fails the test unless the list is as expected.
func (s *Server) CheckList(t T, key string, expected ...string) {
	t.Helper()
	switch found, err := s.List(key); {
	case err != nil:
		t.Errorf("List error, key %#v: %v", key, err)
	case !slices.Equal(expected, found):
		t.Errorf("List error, key %#v: Expected %#v, got %#v", key, expected, found)
	}
}

// CheckSet fails the test unless the set is as expected, in any order.
func (s *Server) CheckSet(t T, key string, expected ...string) {
	t.Helper()
	expected = slices.Sorted(slices.Values(expected))
	switch found, err := s.Members(key); {
	case err != nil:
		t.Errorf("Set error, key %#v: %v", key, err)
	case !slices.Equal(expected, found):
		t.Errorf("Set error, key %#v: Expected %#v, got %#v", key, expected, found)
	}
}

// Dump returns the data of the selected database as text for people.
func (s *Server) Dump() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, "   "+format+"\n", args...) }
	each := func(values []string) {
		for _, v := range values {
			line("%s", shorten(v))
		}
	}
	for _, k := range s.Keys() {
		fmt.Fprintf(&b, "- %s\n", k)
		switch kind := s.do("TYPE", k).Text; kind {
		case "string":
			each([]string{s.do("GET", k).Text})
		case "hash":
			for _, f := range slices.Sorted(slices.Values(texts(s.do("HKEYS", k)))) {
				line("%s: %s", f, shorten(s.do("HGET", k, f).Text))
			}
		case "list":
			each(texts(s.do("LRANGE", k, "0", "-1")))
		case "set":
			each(slices.Sorted(slices.Values(texts(s.do("SMEMBERS", k)))))
		case "zset":
			for pair := range slices.Chunk(texts(s.do("ZRANGE", k, "0", "-1", "WITHSCORES")), 2) {
				score, _ := strconv.ParseFloat(pair[1], 64)
				line("%f: %s", score, shorten(pair[0]))
			}
		default:
			line("(a %s)", kind)
		}
	}
	return b.String()
}

// shorten quotes a value, and cuts it to DumpMaxLineLen.
func shorten(v string) string {
	suffix := ""
	if len(v) > DumpMaxLineLen {
		suffix = fmt.Sprintf("...(%d)", len(v))
		v = v[:max(DumpMaxLineLen-len(suffix), 0)]
	}
	return fmt.Sprintf("%q%s", v, suffix)
}
