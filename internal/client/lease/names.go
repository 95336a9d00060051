package lease

import (
	"encoding/hex"
	"strings"

	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/internal/hashslot"
)

// LockName names the lock of one renewal: of this key as filled by that fill, so that whoever decides late, on a value
// that was renewed meanwhile, finds a lock of the past. It is outside every namespace and so outside every
// prefix that is tracked.
func LockName(key string, fill []byte) string {
	return keyform.Reserved + "lock:" + hex.EncodeToString(fill) + ":" + key
}

// SiblingName names the key beside key that holds the lease of a plain value. It lies in key's slot whatever key looks
// like, and two keys never share one.
func SiblingName(key string) string {
	tag := hashslot.Hashed(key)
	if tag == "" || strings.IndexByte(tag, '}') >= 0 { // between braces it would be another tag, or none
		tag = hashslot.Tag(hashslot.Of(key))
	}
	return keyform.Reserved + "lease:{" + tag + "}:" + key
}
