package localstore

import (
	"strings"
	"sync"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// shard is a part of the keys with its own lock, bookkeeping and policy. The entries are in the tables of the views.
type shard struct {
	mu        sync.Mutex // guards the rest, and writes to the views' tables of this shard
	store     *Store
	number    int
	policy    policy // contains the slots
	free      uint32 // the first free slot
	deadlines expiry.Index
	tally     Stats // the writers' counts

	_ [64]byte // no shard shares a cache line with the next
}

func (sh *shard) init(s *Store, number int) {
	sh.store, sh.number, sh.free = s, number, none
	sh.policy.init(sh.take)
}

// claim returns a free slot for an entry of view with this hash.
func (sh *shard) claim(view uint16, hash uint32) uint32 {
	p := &sh.policy
	id := sh.free
	if id == none {
		id = uint32(len(p.slots))
		p.slots = append(p.slots, slot{})
	} else {
		sh.free = p.slots[id].next
	}
	p.slots[id] = slot{hash: hash, view: view}
	return id
}

// forget frees the slot of an entry that has left its table.
func (sh *shard) forget(id uint32, cost int64) {
	sh.policy.remove(id)
	sh.deadlines.Remove(id)
	sh.policy.slots[id] = slot{next: sh.free}
	sh.free = id
	sh.store.release(cost, 1)
}

// drop removes the entry of a slot.
func (sh *shard) drop(id uint32) {
	s := &sh.policy.slots[id]
	cost := (*sh.store.views.Load())[s.view].drop(sh.number, s.hash, id)
	sh.forget(id, cost)
}

// take asks an entry for its use counter, for the policy.
func (sh *shard) take(id, most uint32) uint32 {
	s := &sh.policy.slots[id]
	return (*sh.store.views.Load())[s.view].take(sh.number, s.hash, id, most)
}

// evict removes one entry to make room, and reports whether there was one.
func (sh *shard) evict() bool {
	id := sh.policy.evict()
	if id == none {
		return false
	}
	sh.drop(id)
	sh.tally.Evictions++
	return true
}

// reap removes up to max dead entries and returns their number.
func (sh *shard) reap(now int64, max int) int {
	n := sh.deadlines.Reap(now, max, sh.drop)
	sh.tally.Expired += uint64(n)
	return n
}

// clear removes the entries of a view whose keys begin with prefix.
func (sh *shard) clear(view uint16, v shelf, prefix string) int {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	var ids []uint32
	v.each(sh.number, func(key string, id uint32) bool {
		if strings.HasPrefix(key, prefix) {
			ids = append(ids, id)
		}
		return true
	})
	for _, id := range ids {
		sh.drop(id)
	}
	return len(ids)
}
