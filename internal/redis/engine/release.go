package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// Memory of removed keys is given back once most keys are gone: about a hundred bytes per slot of a large keyspace. Slots keep their
// numbers, so only pages without any key, and the numbers above the last key, can be freed.

// releaseAt is the number of slots from which on it pays to look for empty pages.
const releaseAt = 8 * pageSize

// vacant is the object in every slot of a released page. It is never written to.
var vacant object

// dropped is called for each removed key. Looking for empty pages takes time proportional to the slots. So it happens when three of four
// slots are free, again after half of the remaining keys or at least a 64th of the slots are gone, and when the last key goes.
func (k *keyspace) dropped() {
	if k.patience--; k.patience > 0 && k.len() > 0 || k.held() < releaseAt || 4*k.len() > k.held() {
		return
	}
	k.release()
	k.patience = max(k.len()/2, k.held()/64)
}

// held is how many slots have memory.
func (k *keyspace) held() int { return int(k.live) * pageSize }

func (k *keyspace) release() {
	for i, p := range k.pages {
		if p != nil && p.empty() {
			k.pages[i] = nil
			k.live--
		}
	}
	last := len(k.pages)
	for last > 0 && k.pages[last-1] == nil {
		last--
	}
	k.pages = append([]*page(nil), k.pages[:last]...)
	k.slots = min(k.slots, uint32(last*pageSize))
	free := make([]uint32, 0, int(k.slots)-k.len())
	for id := k.slots; id > 0; id-- { // descending, so that low slots are used first and high pages stay free
		if k.at(id-1).kind() == values.Missing {
			free = append(free, id-1)
		}
	}
	k.free = free
	if len(k.weights) > int(k.slots) {
		k.weights = append([]uint32(nil), k.weights[:k.slots]...)
	}
	k.deadlines.Release()
	k.fields.Release()
	k.names.release()
}

func (p *page) empty() bool {
	for i := range p {
		if p[i].kind() != values.Missing {
			return false
		}
	}
	return true
}

// release shrinks tables that are mostly empty.
func (n *names) release() {
	if n.count == 0 {
		*n = names{}
		return
	}
	for _, t := range n.tables {
		size := len(t.entries)
		for size > minNames && 4*(t.used+1) <= size {
			size /= 2
		}
		if size < len(t.entries) {
			t.resize(size)
		}
	}
}
