package localstore

import "unsafe"

// packFrom is the number of entries from which a store packs. Below it a collection is cheap anyway, and the writes, which fit
// into the processor's caches there, would pay for the moving of entries.
const packFrom = 1 << 17

// packs reports whether new entries are packed if they can be.
func (v *Values[V]) packs() bool {
	return v.packing.size >= 0 && v.store.entries.Load() >= v.store.packFrom
}

// packedOf makes a packed entry, which has no slot yet, or returns nil if this one cannot be packed.
func (v *Values[V]) packedOf(sh *shard, key string, value *V, deadline, cost int64) *entry {
	text := v.textOf(unsafe.Pointer(value))
	if !v.fits(key, text) {
		return nil
	}
	n := uint8(len(text))
	if v.bytes && text == nil {
		n = nilText
	}
	p := v.pages[sh.number].claim(uint8(len(key)), n, isNew)
	p.slot, p.deadline, p.cost = inPage, deadline, cost
	copy(p.behind(len(key)), key)
	v.pack(p, unsafe.Pointer(value), text)
	return &p.entry
}

// packer returns what takes the place of the entries of a table when it grows: what came before the store had so many is
// packed then.
func (v *Values[V]) packer(sh *shard) func(e *entry) *entry {
	packs := v.packs()
	return func(e *entry) *entry {
		if packs && !e.isPacked() {
			b := (*boxed[V])(unsafe.Pointer(e))
			if p := v.packedOf(sh, b.key, &b.value, b.deadline, b.cost); p != nil {
				p.slot |= e.slot
				p.uses.Store(e.uses.Load())
				return p
			}
		}
		return e
	}
}

// valueOf returns the value of e, which is in room if e is packed.
func (v *Values[V]) valueOf(e *entry, room *V) *V {
	if !e.isPacked() {
		return &(*boxed[V])(unsafe.Pointer(e)).value
	}
	v.unpack(unsafe.Pointer(room), (*packed)(unsafe.Pointer(e)))
	return room
}

// lose is told of every entry that has left its table. It moves a few others out of the page that is being emptied.
func (v *Values[V]) lose(shard int, e *entry) {
	if !e.isPacked() {
		return
	}
	p := &v.pages[shard]
	p.bury((*packed)(unsafe.Pointer(e)))
	for looked := 0; ; {
		old := p.crowded(&looked)
		if old == nil {
			return
		}
		moved := p.claim(old.keyLen, old.text, isMoved)
		moved.slot, moved.deadline, moved.cost = old.slot, old.deadline, old.cost
		moved.uses.Store(old.uses.Load())
		n := int(old.keyLen) + p.rest
		copy(moved.behind(n), old.behind(n))
		copy(moved.textOf(), old.textOf())
		_, hash := v.store.hash(old.key())
		v.tables[shard].Load().replace(hash, &moved.entry)
		p.bury(old)
	}
}
