// Package lab holds the eviction policies that were tried for the tier's store,
// bare: keys are numbers, there are no values, no locks and no deadlines. Each
// is as its paper describes it, short enough to be read beside it. They exist
// to be measured against each other and against the policy that was chosen.
package lab

// A Policy decides which keys a cache of a fixed number of entries holds.
type Policy interface {
	// Access asks for key, takes it in if it is missing, and says whether it
	// was there.
	Access(key uint32) (hit bool)
}

// node is a key in a list.
type node struct {
	key        uint32
	prev, next *node
	in         *list
	uses       uint8
}

// list is a ring around root: root.next is the newest, root.prev the oldest.
type list struct {
	root node
	len  int
}

func newList() *list {
	l := new(list)
	l.root.prev, l.root.next = &l.root, &l.root
	return l
}

func (l *list) push(n *node) {
	n.prev, n.next = &l.root, l.root.next
	n.prev.next, n.next.prev = n, n
	n.in = l
	l.len++
}

func (l *list) remove(n *node) {
	n.prev.next, n.next.prev = n.next, n.prev
	n.in = nil
	l.len--
}

// oldest is nil if the list is empty.
func (l *list) oldest() *node {
	if l.len == 0 {
		return nil
	}
	return l.root.prev
}
