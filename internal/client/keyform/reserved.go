package keyform

import "strings"

// Reserved begins the name of every key that mayfly writes for itself. A namespace whose prefix could produce such a
// name is refused (see Collides), so no key of a user's can meet a lock or a lease.
const Reserved = "mayfly:"

// Collides reports whether a key that begins with prefix can begin with Reserved.
func Collides(prefix string) bool {
	return strings.HasPrefix(prefix, Reserved) || strings.HasPrefix(Reserved, prefix)
}
