package expiry

import (
	"math"
	"math/bits"
)

const pageSize = 16

type pageLevel struct {
	occupied [1]uint64
	bucket   [slots]bucket
}
type bucket struct {
	min int64
	end uint32 // top page's end: index after last entry; 0 empty
}

type sheet struct {
	below, above uint32 // page+1
	bucket       uint32
}

// pages is the candidate that came second: the same wheel, but a bucket is a chain of pages of 16 entries.
// It is not finished: no bounded work, no clock that falls back.
type pages struct {
	base      int64
	n         int
	levels    []pageLevel
	deadlines []int64
	ids       []uint32
	sheets    []sheet
	at        []uint32
}

func (x *pages) Len() int { return x.n }

func (x *pages) locate(d int64) int {
	l := (63 - bits.LeadingZeros64(uint64(d^x.base)|1)) / digit
	return l<<digit | int(d>>(digit*l))&(slots-1)
}

func (x *pages) Set(id uint32, d int64) {
	if d == None {
		x.Remove(id)
		return
	}
	if int(id) >= len(x.at) {
		x.at = append(x.at, make([]uint32, int(id)+1-len(x.at))...)
	}
	b := x.locate(d)
	if e := x.at[id]; e != 0 {
		if old := x.sheets[(e-1)/pageSize].bucket; old == uint32(b) {
			x.deadlines[e-1] = d
			bk := &x.levels[b>>digit].bucket[b&(slots-1)]
			bk.min = min(bk.min, d)
			return
		}
		x.remove(e - 1)
	} else {
		x.n++
	}
	x.push(b, id, d)
}

func (x *pages) Remove(id uint32) {
	if int(id) >= len(x.at) || x.at[id] == 0 {
		return
	}
	x.remove(x.at[id] - 1)
	x.at[id] = 0
	x.n--
}

func (x *pages) push(b int, id uint32, d int64) {
	l, s := b>>digit, b&(slots-1)
	if l >= len(x.levels) {
		x.levels = append(x.levels, make([]pageLevel, l+1-len(x.levels))...)
	}
	lv := &x.levels[l]
	bk := &lv.bucket[s]
	e := bk.end
	if e%pageSize == 0 { // empty or full
		p := uint32(len(x.sheets))
		x.sheets = append(x.sheets, sheet{bucket: uint32(b)})
		if e == 0 {
			lv.occupied[s/64] |= 1 << (s & 63)
			bk.min = d
		} else {
			below := (e - 1) / pageSize
			x.sheets[p].below = below + 1
			x.sheets[below].above = p + 1
		}
		e = p * pageSize
		if int(e) == len(x.ids) {
			var zi [pageSize]uint32
			var zd [pageSize]int64
			x.ids = append(x.ids, zi[:]...)
			x.deadlines = append(x.deadlines, zd[:]...)
		}
	}
	bk.min = min(bk.min, d)
	x.ids[e], x.deadlines[e] = id, d
	x.at[id] = e + 1
	bk.end = e + 1
}

// drop the last entry of bucket
func (x *pages) pop(b int, bk *bucket) {
	bk.end--
	if bk.end%pageSize != 0 {
		return
	}
	p := bk.end / pageSize
	if below := x.sheets[p].below; below != 0 {
		x.sheets[below-1].above = 0
		bk.end = below * pageSize
	} else {
		bk.end = 0
		x.levels[b>>digit].occupied[(b&(slots-1))/64] &^= 1 << (b & 63)
	}
	// dense: move last page into p
	last := uint32(len(x.sheets) - 1)
	if p != last {
		pg := x.sheets[last]
		n := uint32(pageSize)
		if pg.above == 0 {
			ob := &x.levels[pg.bucket>>digit].bucket[pg.bucket&(slots-1)]
			n = ob.end - last*pageSize
			ob.end = p*pageSize + n
		} else {
			x.sheets[pg.above-1].below = p + 1
		}
		if pg.below != 0 {
			x.sheets[pg.below-1].above = p + 1
		}
		x.sheets[p] = pg
		src, dst := last*pageSize, p*pageSize
		copy(x.deadlines[dst:dst+n], x.deadlines[src:src+n])
		for i := uint32(0); i < n; i++ {
			id := x.ids[src+i]
			x.ids[dst+i] = id
			x.at[id] = dst + i + 1
		}
	}
	x.sheets = x.sheets[:last]
}

func (x *pages) remove(e uint32) {
	b := x.sheets[e/pageSize].bucket
	bk := &x.levels[b>>digit].bucket[b&(slots-1)]
	if last := bk.end - 1; last != e {
		id := x.ids[last]
		x.ids[e], x.deadlines[e] = id, x.deadlines[last]
		x.at[id] = e + 1
	}
	x.pop(int(b), bk)
}

func (x *pages) first() (b int, m int64) {
	b, m = -1, math.MaxInt64
	for l := range x.levels {
		lv := &x.levels[l]
		for w := range lv.occupied {
			if o := lv.occupied[w]; o != 0 {
				s := w*64 + bits.TrailingZeros64(o)
				if bm := lv.bucket[s].min; bm < m || b < 0 {
					b, m = l<<digit|s, bm
				}
				break
			}
		}
	}
	return
}

func (x *pages) Reap(now int64, max int, reap func(id uint32)) int {
	done := 0
	for done < max {
		b, m := x.first()
		if b < 0 || m >= now {
			if b < 0 {
				x.base = now
			}
			return done
		}
		l, s := b>>digit, b&(slots-1)
		bk := &x.levels[l].bucket[s]
		shift := digit * l
		start := (m >> shift) << shift
		end := start + (1<<shift - 1)
		if end < now {
			// all dead
			for bk.end != 0 && done < max {
				id := x.ids[bk.end-1]
				x.at[id] = 0
				x.n--
				x.pop(b, bk)
				done++
				reap(id)
			}
			continue
		}
		if start > x.base {
			x.base = start
		}
		for bk.end != 0 {
			id, d := x.ids[bk.end-1], x.deadlines[bk.end-1]
			x.pop(b, bk)
			x.push(x.locate(d), id, d)
			bk = &x.levels[l].bucket[s]
		}
	}
	return done
}

func (x *pages) Deadline(id uint32) int64 {
	if int(id) >= len(x.at) || x.at[id] == 0 {
		return None
	}
	return x.deadlines[x.at[id]-1]
}
