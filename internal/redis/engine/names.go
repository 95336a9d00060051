package engine

import "hash/maphash"

// names find the slot of a key: a hash table with 8 bytes an entry, a third of a Go map of strings, because the keys themselves are in the
// objects.
//
// An entry is the key's tag, 32 bits of its hash, and its slot. The high bits of the tag choose a table of the directory, the low bits a
// place in it, where the search for the entry starts and goes on until a free place. A table doubles until it has maxNames places and then
// splits in two, so no insertion moves more entries than that.
type names struct {
	tables []*nameTable // 1 << depth, by the high bits of a tag; a table of lower depth occurs several times
	depth  uint
	count  int
}

type nameTable struct {
	entries []uint64 // tag << 32 | slot + 1; 0 is free
	used    int
	depth   uint // how many high bits all its tags share
}

const (
	minNames = 8
	maxNames = 1 << 12
)

var nameSeed = maphash.MakeSeed()

func nameTag(key []byte) uint32 { return uint32(maphash.Bytes(nameSeed, key)) }

func (o *object) tag() uint32 { return uint32(maphash.String(nameSeed, o.key)) }

// find returns the object of key, dead or alive, or nil.
func (k *keyspace) find(key []byte) *object {
	if k.names.count == 0 {
		return nil
	}
	tag := nameTag(key)
	t := k.names.table(tag)
	for i := int(tag); ; i++ {
		e := t.entries[i&(len(t.entries)-1)]
		if e == 0 {
			return nil
		}
		if uint32(e>>32) == tag {
			if o := k.at(uint32(e) - 1); o.key == string(key) {
				return o
			}
		}
	}
}

// table returns the table of a tag.
func (n *names) table(tag uint32) *nameTable { return n.tables[uint64(tag)>>(32-n.depth)] }

// add records slot for the key with this tag, which must be absent.
func (n *names) add(tag, slot uint32) {
	if n.tables == nil {
		n.tables = []*nameTable{{entries: make([]uint64, minNames)}}
	}
	t := n.table(tag)
	for 4*(t.used+1) > 3*len(t.entries) {
		if len(t.entries) < maxNames {
			t.double()
		} else {
			n.split(t, tag)
			t = n.table(tag)
		}
	}
	t.put(uint64(tag)<<32 | uint64(slot+1))
	n.count++
}

// remove deletes the entry of slot, whose key has this tag. Entries behind it move up, so that a search for them still succeeds.
func (n *names) remove(tag, slot uint32) {
	t := n.table(tag)
	mask := len(t.entries) - 1
	i := int(tag) & mask
	for t.entries[i] != uint64(tag)<<32|uint64(slot+1) {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; t.entries[j] != 0; j = (j + 1) & mask {
		home := int(t.entries[j]>>32) & mask
		if (j-home)&mask >= (j-i)&mask { // the gap lies between home and j
			t.entries[i] = t.entries[j]
			i = j
		}
	}
	t.entries[i] = 0
	t.used--
	n.count--
}

// put stores an entry in the first free place, starting from its own.
func (t *nameTable) put(e uint64) {
	mask := len(t.entries) - 1
	i := int(e>>32) & mask
	for t.entries[i] != 0 {
		i = (i + 1) & mask
	}
	t.entries[i] = e
	t.used++
}

func (t *nameTable) double() { t.resize(2 * len(t.entries)) }

// resize gives t this many places, more than it has entries.
func (t *nameTable) resize(places int) {
	old := t.entries
	t.entries, t.used = make([]uint64, places), 0
	for _, e := range old {
		if e != 0 {
			t.put(e)
		}
	}
}

// split divides t, the table of tag, by the next bit of its tags.
func (n *names) split(t *nameTable, tag uint32) {
	if t.depth == n.depth {
		wider := make([]*nameTable, 2*len(n.tables))
		for i, table := range n.tables {
			wider[2*i], wider[2*i+1] = table, table
		}
		n.tables = wider
		n.depth++
	}
	depth := t.depth + 1
	var halves [2]*nameTable
	for i := range halves {
		halves[i] = &nameTable{entries: make([]uint64, maxNames), depth: depth}
	}
	for _, e := range t.entries {
		if e != 0 {
			halves[e>>(64-depth)&1].put(e)
		}
	}
	span := 1 << (n.depth - depth) // places in the directory that share one half
	first := int(uint64(tag)>>(32-n.depth)) &^ (2*span - 1)
	for i := range span {
		n.tables[first+i], n.tables[first+span+i] = halves[0], halves[1]
	}
}
