package localstore

// evict returns the slot that should leave, which is still in its queue, or none if the shard is empty.
func (p *policy) evict() uint32 {
	for i := 0; ; i++ {
		if p.small.len == 0 || p.small.len < p.smallMax() && p.main.len > 0 {
			v := p.victim()
			if v == none {
				v = p.main.oldest
			}
			return p.leave(v)
		}
		id := p.small.oldest
		uses := p.take(id, maxUses)
		if i == 0 {
			p.note(uses)
		}
		if uses < promoteAt || i == looks {
			p.ghosts.put(p.len(), p.slots[id].hash, false, p.slots[id].stamp)
			return id
		}
		if v := p.victim(); v != none && p.age(id) < p.age(v) {
			p.move(id, &p.main)
			return p.leave(v)
		}
		p.move(id, &p.small)
	}
}

// note records the reads of the entry that is about to leave the small queue.
func (p *policy) note(uses uint32) {
	if uses > 0 {
		p.unread = 0
	} else {
		p.unread = min(p.unread+1, neverRead)
	}
}

// victim returns the oldest entry of main that nobody has read since its last round. If the first few were all read, they get another round and
// it returns none.
func (p *policy) victim() uint32 {
	for range looks {
		id := p.main.oldest
		if id == none || p.take(id, 1) == 0 {
			return id
		}
		if int(p.age(id)) > p.len() {
			p.judge(-1) // plain order of use would not have kept it
		}
		p.move(id, &p.main)
	}
	return none
}

// leave turns an entry of main into a ghost. It does nothing for none.
func (p *policy) leave(id uint32) uint32 {
	if id != none {
		p.ghosts.left++
		p.ghosts.put(p.len(), p.slots[id].hash, true, p.ghosts.left)
	}
	return id
}
