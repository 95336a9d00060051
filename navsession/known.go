package navsession

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

// known remembers the keys that this process wrote within their idle gap. What was our list then is one still, or is gone: so
// the next page of a visit need not ask what else the key may hold. (Unless somebody deletes the list and puts something
// else in its place while the visit lasts. That would keep its value, and get the visit's end.)
//
// It has a place for 1024 keys, and forgets one when another takes its place: then it is asked again, which costs some 3 us.
type known struct {
	seed  maphash.Seed
	begun time.Time
	gap   int64 // ms
	// keys holds 24 bits of a key's hash, and above begun, in ms, when it was written.
	keys [1024]atomic.Uint64
}

const timeBits = 40

func newKnown(gap time.Duration) *known {
	return &known{seed: maphash.MakeSeed(), begun: time.Now().Add(-gap), gap: gap.Milliseconds()}
}

// place is where a key is, and how it looks there if it was written now.
func (k *known) place(full string, now time.Time) (*atomic.Uint64, uint64) {
	hash := maphash.String(k.seed, full)
	ms := uint64(now.Sub(k.begun).Milliseconds())
	return &k.keys[hash%uint64(len(k.keys))], hash>>timeBits<<timeBits | ms&(1<<timeBits-1)
}

// has reports whether key was written less than the gap ago.
func (k *known) has(full string, now time.Time) bool {
	at, mark := k.place(full, now)
	before := at.Load()
	return before>>timeBits == mark>>timeBits && before != 0 && int64(mark-before) < k.gap
}

// wrote notes that key was written at now, or, after an error, that nothing is known of it.
func (k *known) wrote(full string, now time.Time, err error) {
	at, mark := k.place(full, now)
	if err != nil {
		mark = 0
	}
	at.Store(mark)
}
