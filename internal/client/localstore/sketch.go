package localstore

import "math/bits"

// sketch counts how often hashes were seen, about and never too low but for forgetting: four counters of four bits for
// each, of which the smallest is believed. It forgets half of everything now and then, so that the past does not
// outvote the present.
//
// It remembers keys that are not in the store, which is its purpose: what was asked for before gets in.
type sketch struct {
	words []uint64 // sixteen counters each; a power of two of them
	seen  int      // counts since it forgot
}

// agingFactor is after how many counts per word, on average, the sketch forgets half. By measurement: less and hot keys
// lose to a scan, more and yesterday's keys stay too long (docs/decisions/0004).
const agingFactor = 10

// grow makes room for n entries. A counter that two keys shared is copied to both its successors, so no estimate
// changes.
func (k *sketch) grow(n int) {
	if n <= len(k.words) {
		return
	}
	size := max(8, 1<<bits.Len(uint(n-1)))
	words := make([]uint64, size)
	for i := 0; len(k.words) > 0 && i < size; i += len(k.words) {
		copy(words[i:], k.words)
	}
	k.words = words
}

// at returns the word and the shift of the counter of hash in row 0..3.
func (k *sketch) at(hash uint32, row uint) (word int, shift uint) {
	h := (uint64(hash) + uint64(row)<<32) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	h *= 0xd6e8feb86659fd93
	return int(h >> 32 & uint64(len(k.words)-1)), uint(h&3<<4) + row<<2
}

// estimate returns how often hash was seen, at most 15.
func (k *sketch) estimate(hash uint32) int {
	if len(k.words) == 0 {
		return 0
	}
	least := 15
	for row := range uint(4) {
		w, shift := k.at(hash, row)
		least = min(least, int(k.words[w]>>shift&15))
	}
	return least
}

// add counts hash once.
func (k *sketch) add(hash uint32) {
	if len(k.words) == 0 {
		return
	}
	counted := false
	for row := range uint(4) {
		w, shift := k.at(hash, row)
		if k.words[w]>>shift&15 < 15 {
			k.words[w] += 1 << shift
			counted = true
		}
	}
	if !counted {
		return
	}
	if k.seen++; k.seen >= agingFactor*len(k.words) {
		k.forget()
	}
}

// forget halves every counter.
func (k *sketch) forget() {
	for i, w := range k.words {
		k.words[i] = w >> 1 & 0x7777_7777_7777_7777
	}
	k.seen /= 2
}
