package engine

import "slices"

// Sessions stand in lines, first come first: those watching a key, blocked on a key, or subscribed to a channel. A name with an empty line is
// not in the map.

// join puts who at the end of name's line.
func join[T any](lines *map[string][]T, name string, who T) {
	if *lines == nil {
		*lines = make(map[string][]T)
	}
	(*lines)[name] = append((*lines)[name], who)
}

// leave removes who from name's line.
func leave[T comparable](lines map[string][]T, name string, who T) {
	line := slices.DeleteFunc(lines[name], func(o T) bool { return o == who })
	if len(line) == 0 {
		delete(lines, name)
	} else {
		lines[name] = line
	}
}
