package lab

// Lazy is the store's policy without what adapts it: W-TinyLFU whose reads only count themselves in the entry, up to
// three, and whose writer adds these counts to the sketch when its hand comes by. The share of the window is fixed,
// and a candidate must beat the victim by more than margin.
type Lazy struct {
	capacity, window, margin int
	m                        map[uint32]*node
	w, main                  *list
	sketch                   *Sketch
}

func NewLazy(capacity int, share float64, margin int) *Lazy {
	return &Lazy{capacity, max(1, int(share*float64(capacity))), margin,
		map[uint32]*node{}, newList(), newList(), NewSketch(capacity)}
}

func (c *Lazy) Access(key uint32) bool {
	if n := c.m[key]; n != nil {
		n.uses = min(n.uses+1, 3)
		return true
	}
	if len(c.m) == c.capacity {
		c.evict()
	}
	c.sketch.Add(key)
	n := &node{key: key}
	c.m[key] = n
	c.w.push(n)
	for c.w.len > c.window && len(c.m) < c.capacity {
		v := c.w.oldest()
		c.w.remove(v)
		c.main.push(v)
	}
	return false
}

// unused is the oldest of l that was not read since it was passed last, or nil if five in a row were.
func (c *Lazy) unused(l *list) *node {
	for range 5 {
		n := l.oldest()
		if n == nil || n.uses == 0 {
			return n
		}
		for ; n.uses > 0; n.uses-- {
			c.sketch.Add(n.key)
		}
		l.remove(n)
		l.push(n)
	}
	return nil
}

func (c *Lazy) evict() {
	candidate, victim := c.unused(c.w), c.unused(c.main)
	if candidate == nil {
		candidate = c.w.oldest()
	}
	if victim != nil && c.sketch.Estimate(candidate.key) > c.sketch.Estimate(victim.key)+c.margin {
		c.w.remove(candidate)
		c.main.push(candidate)
		candidate = victim
	}
	candidate.in.remove(candidate)
	delete(c.m, candidate.key)
}
