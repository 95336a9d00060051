package keyform

import "strings"

// Names returns the name and the prefix of a namespace. If one is empty it follows from the other: the name "users" from the prefix "users:",
// the name "cache.user" from the prefix "cache:user:", and the prefix "users:" from the name "users".
func Names(name, prefix string) (string, string) {
	switch {
	case name == "":
		name = strings.Map(func(r rune) rune {
			if r == ':' || r == '/' || r == '|' {
				return '.'
			}
			return r
		}, strings.TrimRight(prefix, ":/|"))
	case prefix == "":
		prefix = name + ":"
	}
	return name, prefix
}
