package expiry

// Release gives back the memory of pages without an entry. It takes as long as there are ids, so call it when most of them are gone.
func (x *Index) Release() {
	x.listed = nil // and with it the marks of those that it still has
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

// absent is what node returns of ids whose page was given back.
var absent = node{deadline: None}
