package lab

// LRU evicts what was used the longest ago. It is the yardstick, not a
// candidate: a hit moves the entry in a list, which needs an exclusive lock.
type LRU struct {
	capacity int
	m        map[uint32]*node
	l        *list
}

func NewLRU(capacity int) *LRU {
	return &LRU{capacity, map[uint32]*node{}, newList()}
}

func (c *LRU) Access(key uint32) bool {
	if n := c.m[key]; n != nil {
		c.l.remove(n)
		c.l.push(n)
		return true
	}
	if c.l.len == c.capacity {
		v := c.l.oldest()
		c.l.remove(v)
		delete(c.m, v.key)
	}
	n := &node{key: key}
	c.m[key] = n
	c.l.push(n)
	return false
}

// Clock is FIFO with a second chance: a hit sets a bit, and the hand that finds
// the bit clears it and passes by.
type Clock struct {
	capacity int
	m        map[uint32]*node
	l        *list
}

func NewClock(capacity int) *Clock {
	return &Clock{capacity, map[uint32]*node{}, newList()}
}

func (c *Clock) Access(key uint32) bool {
	if n := c.m[key]; n != nil {
		n.uses = 1
		return true
	}
	if c.l.len == c.capacity {
		v := c.l.oldest()
		for v.uses > 0 {
			v.uses = 0
			c.l.remove(v)
			c.l.push(v)
			v = c.l.oldest()
		}
		c.l.remove(v)
		delete(c.m, v.key)
	}
	n := &node{key: key}
	c.m[key] = n
	c.l.push(n)
	return false
}

// Sieve is Zhang et al., NSDI 2024: as Clock, but what survives stays where it
// is, and the hand moves on from there.
type Sieve struct {
	capacity int
	m        map[uint32]*node
	l        *list
	hand     *node
}

func NewSieve(capacity int) *Sieve {
	return &Sieve{capacity: capacity, m: map[uint32]*node{}, l: newList()}
}

func (c *Sieve) Access(key uint32) bool {
	if n := c.m[key]; n != nil {
		n.uses = 1
		return true
	}
	if c.l.len == c.capacity {
		v := c.hand
		if v == nil {
			v = c.l.oldest()
		}
		for v.uses > 0 {
			v.uses = 0
			if v = v.prev; v == &c.l.root {
				v = c.l.oldest()
			}
		}
		c.hand = v.prev
		if c.hand == &c.l.root {
			c.hand = nil
		}
		c.l.remove(v)
		delete(c.m, v.key)
	}
	n := &node{key: key}
	c.m[key] = n
	c.l.push(n)
	return false
}

// S3FIFO is Yang et al., SOSP 2023: a small queue for newcomers, a main queue
// for what was asked for again, and a ghost queue of keys that just left the
// small one.
type S3FIFO struct {
	capacity, small int
	m               map[uint32]*node
	s, main, ghost  *list
}

func NewS3FIFO(capacity int) *S3FIFO {
	return &S3FIFO{capacity, max(1, capacity/10), map[uint32]*node{}, newList(), newList(), newList()}
}

func (c *S3FIFO) Access(key uint32) bool {
	n := c.m[key]
	if n != nil && n.in != c.ghost {
		n.uses = min(n.uses+1, 3)
		return true
	}
	for c.s.len+c.main.len >= c.capacity {
		c.evict()
	}
	if n = c.m[key]; n != nil { // still a ghost
		c.ghost.remove(n)
		n.uses = 0
		c.main.push(n)
		return false
	}
	n = &node{key: key}
	c.m[key] = n
	c.s.push(n)
	return false
}

func (c *S3FIFO) evict() {
	if c.s.len >= c.small || c.main.len == 0 {
		v := c.s.oldest()
		c.s.remove(v)
		if v.uses > 1 {
			v.uses = 0
			c.main.push(v)
			return
		}
		c.ghost.push(v)
		if c.ghost.len > c.capacity-c.small {
			g := c.ghost.oldest()
			c.ghost.remove(g)
			delete(c.m, g.key)
		}
		return
	}
	v := c.main.oldest()
	c.main.remove(v)
	if v.uses > 0 {
		v.uses--
		c.main.push(v)
		return
	}
	delete(c.m, v.key)
}
