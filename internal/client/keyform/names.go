package keyform

import "strings"

// Names returns the name and the prefix of a namespace. One that is empty follows from the other: the name "users" from the prefix "users:",
// "cache.user" from "cache:user:", and the prefix "users:" from the name "users".
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
