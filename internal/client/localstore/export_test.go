package localstore

import "unsafe"

// PackFrom has the store pack from n entries on.
func (s *Store) PackFrom(n int) { s.packFrom = int64(n) }

// Pages are how many pages the books of a view know, and how many of its entries are packed. wrong says what the books have wrong.
func (v *Values[V]) Pages() (known, packedEntries int, wrong string) {
	for i := range v.pages {
		p := &v.pages[i]
		live, held, dead := 0, 0, 0
		v.tables[i].Load().each(func(e *entry) bool {
			if e.isPacked() {
				e := (*packed)(unsafe.Pointer(e))
				packedEntries++
				live += p.size(e)
				if pg := p.list[e.page].bytes; uintptr(unsafe.Pointer(e))-uintptr(unsafe.Pointer(&pg[0])) >= uintptr(len(pg)) {
					wrong = "an entry is not in its page"
				}
			}
			return true
		})
		for n := range p.list {
			pg := &p.list[n]
			if pg.bytes == nil {
				continue
			}
			known++
			if pg.front > pg.back {
				wrong = "a page is fuller than full"
			}
			if !p.isOpen(uint32(n)) {
				held += pg.used()
				dead += pg.dead
			}
		}
		if live != p.live || held != p.held || dead != p.dead {
			wrong = "the sums of a shard are not those of its pages"
		}
		if dead > held/deadShare+2*largestPage {
			wrong = "dead room is not given back"
		}
	}
	return known, packedEntries, wrong
}
