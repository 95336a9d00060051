package localstore

import (
	"sync/atomic"
	"unsafe"
)

// entry is how every entry begins, whatever type its value has: it has no pointer, and says in slot whether a [boxed] or a [packed] goes
// on from here. All but uses is written before the entry is published and never after: who changes a value publishes a
// new entry.
type entry struct {
	deadline int64 // unix ms; expiry.None lives until evicted
	cost     int64
	slot     uint32        // its slot, and the bit inPage
	uses     atomic.Uint32 // reads since the policy looked last, at most maxUses
}

// inPage is the bit of entry.slot that a packed entry has. A store holds fewer than 1<<31 entries.
const inPage = 1 << 31

func (e *entry) id() uint32     { return e.slot &^ inPage }
func (e *entry) isPacked() bool { return e.slot&inPage != 0 }

// key returns the key. For a packed entry it lies in the page and keeps all of it in memory.
func (e *entry) key() string {
	if e.isPacked() {
		return (*packed)(unsafe.Pointer(e)).key()
	}
	return (*keyed)(unsafe.Pointer(e)).key
}

// boxed is an entry that is an allocation of its own, because its value has pointers or is large.
type boxed[V any] struct {
	keyed
	value V
}

// keyed is the part of a boxed entry that does not depend on the type of the value.
type keyed struct {
	entry
	key string
}

// packed is an entry that lies in a page. Behind it are the bytes of its key and the rest of its value; the text of the value is at the
// other end of the page, so that a search walks through dense memory. It has no pointer, so the garbage collector, which
// keeps the page as long as anybody points into it, does not look at what is in it.
type packed struct {
	entry
	page   uint32 // where the page is in the books, or none once the entry has left its table. Guarded by the lock of the shard
	toText uint16 // from here to the text
	keyLen uint8
	text   uint8 // the length of the text, or nilText
}

const (
	packedHead = int(unsafe.Sizeof(packed{}))
	nilText    = 1<<8 - 1 // a []byte that is nil
)

// frontSize is what a packed entry takes but for its text. The next one begins at a multiple of eight.
func frontSize(keyLen, rest int) int { return (packedHead + keyLen + rest + 7) &^ 7 }

func (p *packed) textLen() int {
	if p.text == nilText {
		return 0
	}
	return int(p.text)
}

// behind are the n bytes that follow. The last byte of a page is never used, so even no bytes do not begin beyond it.
func (p *packed) behind(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p), packedHead)), n)
}

func (p *packed) key() string {
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(p), packedHead)), int(p.keyLen))
}

// restOf is the rest of the value, of n bytes.
func (p *packed) restOf(n int) []byte { return p.behind(int(p.keyLen) + n)[p.keyLen:] }

// textOf is the text of the value. It has no room behind it.
func (p *packed) textOf() []byte {
	if p.text == nilText {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p), p.toText)), int(p.text))
}
