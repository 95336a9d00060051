//go:build !race

package effort

// Race reports whether the race detector is on.
const Race = false
