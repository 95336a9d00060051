package lease

import (
	"encoding/hex"
	"strings"

	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/internal/hashslot"
)

// LockName names the lock of one renewal: of this key as stored by this fill. A process that decides late, about a value renewed meanwhile,
// finds the lock of an earlier fill. The name lies outside every namespace, and so outside every tracked prefix.
func LockName(key string, fill []byte) string {
	return keyform.Reserved + "lock:" + hex.EncodeToString(fill) + ":" + key
}

// SiblingName names the key beside key that holds the lease of a plain value. It lies in the slot of key, whatever key looks like, and two
// keys never share one.
func SiblingName(key string) string {
	tag := hashslot.Hashed(key)
	if tag == "" || strings.IndexByte(tag, '}') >= 0 { // inside braces this would be another tag, or none
		tag = hashslot.Tag(hashslot.Of(key))
	}
	return keyform.Reserved + "lease:{" + tag + "}:" + key
}
