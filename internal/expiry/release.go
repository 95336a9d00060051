package expiry

// Release frees pages without an entry. It takes time proportional to the ids, so call it when most of them are gone.
func (x *Index) Release() {
	x.listed = nil // this drops the stale marks of its entries too
	for i, p := range x.pages {
		if p == nil {
			continue
		}
		empty := true
		for j := range p {
			if n := &p[j]; n.deadline != None {
				empty = false
			} else {
				n.prev = 0
			}
		}
		if empty {
			x.pages[i] = nil
		}
	}
	last := len(x.pages)
	for last > 0 && x.pages[last-1] == nil {
		last--
	}
	x.pages = append([]*page(nil), x.pages[:last]...)
}

// absent is what node returns for ids whose page was released.
var absent = node{deadline: None}
