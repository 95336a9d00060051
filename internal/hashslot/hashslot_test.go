package hashslot_test

import (
	"fmt"
	"testing"

	"github.com/mayflycache/mayfly/internal/hashslot"
)

// The slots are the answers of a real Redis to CLUSTER KEYSLOT.
func TestOf(t *testing.T) {
	for key, want := range map[string]int{
		"":                     0,
		"123456789":            0x31c3, // the check value of CRC16/XMODEM
		"foo":                  12182,
		"bar":                  5061,
		"{user1000}.following": 3443,
		"{user1000}.followers": 3443,
		"foo{}{bar}":           8363,
		"foo{{bar}}zap":        4015,
		"foo{bar}{zap}":        5061,
	} {
		if got := hashslot.Of(key); got != want {
			t.Errorf("Of(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestTagFindsEverySlot(t *testing.T) {
	for slot := range hashslot.Count {
		tag := hashslot.Tag(slot)
		if hashslot.Of(tag) != slot || hashslot.Of("x{"+tag+"}y") != slot || len(tag) > 4 {
			t.Fatalf("Tag(%d) = %q, whose slot is %d", slot, tag, hashslot.Of(tag))
		}
	}
}

func Example() {
	fmt.Println(hashslot.Of("user:1001"), hashslot.Of("{user:1001}:lease"))
	// Output: 5712 5712
}
