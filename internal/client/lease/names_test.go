package lease_test

import (
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/hashslot"
)

var oddKeys = []string{
	"cache:user:1001", "user:{7}:cart", "{}", "a}b", "}{", "{a", "a{}b{c}", "}", "x{{y}}z", "\x00\xff", "{a}}", "",
	"mayfly", "ayfly:lock:x",
}

func TestSiblingLivesInTheSlotOfItsKey(t *testing.T) {
	seen := map[string]string{}
	for _, key := range oddKeys {
		name := lease.SiblingName(key)
		if hashslot.Of(name) != hashslot.Of(key) {
			t.Errorf("SiblingName(%q) = %q: slot %d, want %d", key, name, hashslot.Of(name), hashslot.Of(key))
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q share the sibling %q", key, other, name)
		}
		seen[name] = key
	}
}

func FuzzSiblingLivesInTheSlotOfItsKey(f *testing.F) {
	for _, key := range oddKeys {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		name := lease.SiblingName(key)
		if hashslot.Of(name) != hashslot.Of(key) || !strings.HasSuffix(name, "}:"+key) {
			t.Errorf("SiblingName(%q) = %q", key, name)
		}
	})
}

// No user's key can be one of ours: exactly those prefixes are forbidden that could collide with a reserved name.
func TestNoAllowedPrefixReachesAReservedName(t *testing.T) {
	for _, prefix := range []string{"", "m", "may", "mayfly", "mayfly:", "mayfly:lock:", "mayfly:x"} {
		if !keyform.Collides(prefix) {
			t.Errorf("prefix %q is allowed", prefix)
		}
	}
	for _, prefix := range []string{"a", "mayflys:", "my:", "cache:user:", "Mayfly:"} {
		if keyform.Collides(prefix) {
			t.Errorf("prefix %q is refused", prefix)
		}
		for _, key := range oddKeys {
			for _, ours := range []string{lease.LockName(prefix+key, []byte{1, 2}), lease.SiblingName(prefix + key)} {
				if strings.HasPrefix(ours, prefix) {
					t.Errorf("%q lies in the namespace %q", ours, prefix)
				}
			}
		}
	}
}

func TestLocksOfTwoFillsDiffer(t *testing.T) {
	if a, b := lease.LockName("k", []byte{1}), lease.LockName("k", []byte{2}); a == b {
		t.Errorf("both are %q", a)
	}
}
