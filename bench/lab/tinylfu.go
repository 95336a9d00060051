package lab

import "math/bits"

// Sketch counts how often keys were asked for, about, in four bits each, and
// forgets half of it after every ten times capacity additions.
type Sketch struct {
	table []uint64
	mask  uint64
	added int
	limit int
}

func NewSketch(capacity int) *Sketch {
	n := 8
	for n < capacity {
		n *= 2
	}
	return &Sketch{table: make([]uint64, n), mask: uint64(n - 1), limit: 10 * capacity}
}

func mix(k uint32) uint64 {
	hi, lo := bits.Mul64(uint64(k)^0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9)
	return hi ^ lo
}

// at returns the word and the shift of the counter of h in row i.
func (s *Sketch) at(h uint64, i uint) (word uint64, shift uint) {
	h2 := h*0x9e3779b97f4a7c15 + uint64(i)*0xd1b54a32d192ed03
	h2 ^= h2 >> 29
	return h2 & s.mask, uint(h>>(60-4*i))&3<<4 + i<<2
}

func (s *Sketch) Estimate(key uint32) int {
	h := mix(key)
	least := 15
	for i := range uint(4) {
		w, sh := s.at(h, i)
		least = min(least, int(s.table[w]>>sh&15))
	}
	return least
}

func (s *Sketch) Add(key uint32) {
	h := mix(key)
	added := false
	for i := range uint(4) {
		w, sh := s.at(h, i)
		if s.table[w]>>sh&15 < 15 {
			s.table[w] += 1 << sh
			added = true
		}
	}
	if !added {
		return
	}
	if s.added++; s.added >= s.limit {
		for i := range s.table {
			s.table[i] = s.table[i] >> 1 & 0x7777777777777777
		}
		s.added /= 2
	}
}

// TinyLFU is W-TinyLFU (Einziger, Friedman, Manes, TOS 2017) with a window of one part in a
// hundred, fed with every access: the form that needs a buffer of reads.
type TinyLFU struct {
	capacity, window, protected int
	m                           map[uint32]*node
	w, prob, prot               *list
	sketch                      *Sketch
}

func NewTinyLFU(capacity int, share float64) *TinyLFU {
	window := max(1, int(share*float64(capacity)))
	return &TinyLFU{capacity, window, (capacity - window) * 8 / 10,
		map[uint32]*node{}, newList(), newList(), newList(), NewSketch(capacity)}
}

func (c *TinyLFU) Access(key uint32) bool {
	c.sketch.Add(key)
	if n := c.m[key]; n != nil {
		switch n.in {
		case c.prob:
			c.prob.remove(n)
			c.prot.push(n)
			if c.prot.len > c.protected {
				d := c.prot.oldest()
				c.prot.remove(d)
				c.prob.push(d)
			}
		default:
			in := n.in
			in.remove(n)
			in.push(n)
		}
		return true
	}
	n := &node{key: key}
	c.m[key] = n
	c.w.push(n)
	if c.w.len > c.window {
		cand := c.w.oldest()
		c.w.remove(cand)
		c.prob.push(cand)
		if len(c.m) > c.capacity {
			v := c.prob.oldest()
			if v == cand {
				v = c.prot.oldest()
			}
			if v != nil && c.sketch.Estimate(cand.key) > c.sketch.Estimate(v.key) {
				cand = v
			}
			cand.in.remove(cand)
			delete(c.m, cand.key)
		}
	}
	return false
}
