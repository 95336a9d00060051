package keyform

import "strings"

// Reserved is the beginning of every key that mayfly writes for itself. A namespace whose prefix could produce such a name is
// refused (see Collides), so a user's key never meets a lock or a lease.
const Reserved = "mayfly:"

// Collides reports whether a key that begins with prefix can begin with Reserved.
func Collides(prefix string) bool {
	return strings.HasPrefix(prefix, Reserved) || strings.HasPrefix(Reserved, prefix)
}
