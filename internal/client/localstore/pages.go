package localstore

import "unsafe"

// pages are where the packed entries of one view in one shard lie. The lock of the shard guards them.
//
// A page is bytes, which the garbage collector does not scan: it marks a page once, and every further pointer into it finds it
// marked. A page is filled from both ends, entries and keys from its beginning and texts from its end, and what is in it is never moved or
// overwritten; so who reads without a lock, or keeps a value that aliases the page, is safe: the page stays as long as
// anybody points into it, whatever the books say.
//
// An entry that leaves its table is dead room. When more than a fifth of the full pages is, the emptiest of them is emptied: its living
// entries are copied to the page that is being filled, a few with each entry that dies, and then the books forget it.
type pages struct {
	rest int // of every value
	list []page
	free uint32    // the first of list that is none
	open [2]uint32 // those that are being filled, or none: one with new entries, one with those that have been moved, which will live longer
	from uint32    // the one that is being emptied, or none
	at   int       // how far

	live       int // bytes of living entries
	held, dead int // bytes of the entries in full pages, and of the dead ones among them
}

type page struct {
	bytes       []byte
	front, back int    // what is between them is free
	dead        int    // bytes of its entries that are dead
	next        uint32 // in the list of free numbers
}

// used leaves out the last byte, which is never used: nothing that is empty begins behind the page.
func (p *page) used() int { return p.front + len(p.bytes) - 1 - p.back }

const (
	smallestPage = 512 // holds one packed entry at least
	largestPage  = 64 << 10
	deadShare    = 5 // one in so many bytes may be dead
	movesPerLoss = 8 // entries that are looked at when one dies
)

func (p *pages) init(rest int) {
	p.rest, p.free, p.open, p.from = rest, none, [2]uint32{none, none}, none
}

// Where an entry comes from.
const (
	isNew   = 0
	isMoved = 1
)

// claim returns the room of an entry.
func (p *pages) claim(keyLen uint8, text uint8, origin int) *packed {
	open := &p.open[origin]
	head := packed{keyLen: keyLen, text: text}
	front, back := frontSize(int(keyLen), p.rest), head.textLen()
	if *open == none || p.list[*open].back-p.list[*open].front < front+back {
		p.turn(open)
	}
	pg := &p.list[*open]
	e := (*packed)(unsafe.Pointer(&pg.bytes[pg.front]))
	pg.back -= back
	e.page, e.keyLen, e.text, e.toText = *open, keyLen, text, uint16(pg.back-pg.front)
	pg.front += front
	p.live += front + back
	return e
}

// size is what e takes in its page.
func (p *pages) size(e *packed) int { return frontSize(int(e.keyLen), p.rest) + e.textLen() }

// turn opens a new page. It is about a sixteenth of what lives in the others at most, so that a small store is not one empty page.
func (p *pages) turn(open *uint32) {
	if full := *open; full != none {
		*open = none
		p.held += p.list[full].used()
		p.dead += p.list[full].dead
		p.retire(full)
	}
	size := smallestPage
	for size < largestPage && size < p.live/16 {
		size *= 2
	}
	number := p.free
	if number == none {
		number = uint32(len(p.list))
		p.list = append(p.list, page{})
	} else {
		p.free = p.list[number].next
	}
	p.list[number] = page{bytes: make([]byte, size), back: size - 1}
	*open = number
}

// bury notes that e has left its table.
func (p *pages) bury(e *packed) {
	number, size := e.page, p.size(e)
	e.page = none
	p.live -= size
	p.list[number].dead += size
	if !p.isOpen(number) {
		p.dead += size
		p.retire(number)
	} else if p.live == 0 {
		for i, number := range p.open {
			if number != none {
				p.open[i] = none
				p.forget(number)
			}
		}
	}
}

func (p *pages) isOpen(number uint32) bool {
	return number == p.open[isNew] || number == p.open[isMoved]
}

// retire forgets a full page if all that is in it is dead.
func (p *pages) retire(number uint32) {
	if n := p.list[number].used(); p.list[number].dead == n {
		p.held -= n
		p.dead -= n
		p.forget(number)
	}
}

func (p *pages) forget(number uint32) {
	p.list[number] = page{next: p.free}
	p.free = number
	if p.from == number {
		p.from = none
	}
}

// crowded returns the next living entry that should be moved, or nil if there is none, or none within the next few.
// looked counts the entries that were looked at.
func (p *pages) crowded(looked *int) *packed {
	for ; *looked < movesPerLoss; *looked++ {
		if p.from == none {
			if p.dead*deadShare <= p.held {
				return nil
			}
			p.from, p.at = p.emptiest(), 0
		}
		e := (*packed)(unsafe.Pointer(&p.list[p.from].bytes[p.at]))
		p.at += frontSize(int(e.keyLen), p.rest)
		if e.page != none {
			*looked++
			return e
		}
	}
	return nil
}

// emptiest returns the full page with the largest share of dead bytes. There is a full page.
func (p *pages) emptiest() uint32 {
	best, share := none, -1.0
	for i := range p.list {
		pg := &p.list[i]
		if s := float64(pg.dead) / float64(pg.used()); !p.isOpen(uint32(i)) && len(pg.bytes) > 0 && s > share {
			best, share = uint32(i), s
		}
	}
	return best
}
