// Package diff says how two values differ. It stands in for modules that compare values, because what they do by reflection makes the linker
// keep every method of go-redis in each test program.
//
// It is for tests only.
package diff

import (
	"fmt"
	"reflect"
	"strings"
)

// Of returns "" if got equals want as by reflect.DeepEqual, and otherwise both values from a little before their texts begin to differ.
func Of(want, got any) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	w, g := text(want), text(got)
	at := 0
	for at < min(len(w), len(g)) && w[at] == g[at] {
		at++
	}
	return fmt.Sprintf("\nwant %s\n got %s", from(w, at), from(g, at))
}

// text returns v as Go would write it, so that nil and empty values, and strings with odd bytes, can be told apart.
func text(v any) string {
	if b, ok := v.([]byte); ok && b != nil {
		return fmt.Sprintf("%q", b)
	}
	return strings.TrimPrefix(fmt.Sprintf("%#v", v), fmt.Sprintf("%T", v))
}

// from cuts off what is far before the position at.
func from(s string, at int) string {
	if at -= 40; at <= 0 {
		return s
	}
	return "..." + strings.ToValidUTF8(s[at:], "")
}
