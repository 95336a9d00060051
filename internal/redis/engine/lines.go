package engine

import "slices"

// Sessions stand in lines, first come first: who watches a key, who waits for it, who subscribed to a channel. A name without a line is not
// in the map.

// join puts who at the end of the line of name.
func join[T any](lines *map[string][]T, name string, who T) {
	if *lines == nil {
		*lines = make(map[string][]T)
	}
	(*lines)[name] = append((*lines)[name], who)
}

// leave takes who out of the line of name.
func leave[T comparable](lines map[string][]T, name string, who T) {
	line := slices.DeleteFunc(lines[name], func(o T) bool { return o == who })
	if len(line) == 0 {
		delete(lines, name)
	} else {
		lines[name] = line
	}
}
