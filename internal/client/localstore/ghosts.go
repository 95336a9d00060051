package localstore

// ghosts remember the entries that left a shard recently. Each ghost has 15 bits of the entry's hash, the queue it left, and 16 bits of a time, in
// units that grow with the shard. A new ghost replaces the oldest in its bucket. There are two ghosts per entry of the shard: eight bytes of
// bookkeeping, allocated once the shard has been full.
type ghosts struct {
	now   uint32   // number of entries that came in
	left  uint32   // number of entries that left main
	cells []uint32 // buckets of perGhosts; a cell is a tag, a bit for main, and a time; 0 is none
	next  []uint8  // by bucket: the cell with the oldest ghost
	shift uint     // of the times
}

// ghost is what is known about an entry that left.
type ghost struct {
	ofMain bool
	age    uint32 // entries that came in since its time; if it is of main, entries that left main
}

const (
	perGhosts = 16
	timeBits  = 16
	timeMask  = 1<<timeBits - 1
	mainBit   = 1 << timeBits
	tagShift  = timeBits + 1
)

// grow makes room for the ghosts of n entries, and for some more each time. Each bucket of the larger table gets the cells of the old bucket
// around its middle; cells that belong to it but were in a neighbouring bucket are forgotten.
func (g *ghosts) grow(n int) {
	want := (2*n + perGhosts - 1) / perGhosts
	if want <= len(g.next) {
		return
	}
	was := *g
	if len(was.next) > 0 {
		want += want / 8
	}
	for n>>g.shift > timeMask/8 {
		g.shift++
	}
	g.cells, g.next = make([]uint32, want*perGhosts), make([]uint8, want)
	for b := range g.next {
		if len(was.next) == 0 {
			break
		}
		old := (2*b + 1) * len(was.next) / (2 * want)
		g.next[b] = was.next[old]
		for i, cell := range was.cells[old*perGhosts:][:perGhosts] {
			g.cells[b*perGhosts+i] = cell&^timeMask | (g.clock(cell)-was.age(cell))>>g.shift&timeMask
		}
	}
}

// bucket returns the cells of a hash, and the cell with the oldest ghost.
func (g *ghosts) bucket(hash uint32) (cells []uint32, next *uint8) {
	b := int(uint64(hash) * uint64(len(g.next)) >> 32)
	return g.cells[b*perGhosts : (b+1)*perGhosts], &g.next[b]
}

// tag returns the part of a hash that a cell keeps: the end that does not select the bucket.
func tag(hash uint32) uint32 { return max(hash&(1<<15-1), 1) }

// clock returns the current time in the units of a cell.
func (g *ghosts) clock(cell uint32) uint32 {
	if cell&mainBit != 0 {
		return g.left
	}
	return g.now
}

// age returns how long ago a cell's time was.
func (g *ghosts) age(cell uint32) uint32 {
	return (g.clock(cell)>>g.shift - cell) & timeMask << g.shift
}

// put remembers an entry that leaves a shard of n entries.
func (g *ghosts) put(n int, hash uint32, ofMain bool, at uint32) {
	g.grow(n)
	cell := tag(hash)<<tagShift | at>>g.shift&timeMask
	if ofMain {
		cell |= mainBit
	}
	cells, next := g.bucket(hash)
	cells[*next] = cell
	*next = (*next + 1) % perGhosts
}

// take finds and forgets the latest ghost of a hash.
func (g *ghosts) take(hash uint32) (found ghost, ok bool) {
	if len(g.next) == 0 {
		return ghost{}, false
	}
	cells, next := g.bucket(hash)
	for i := range uint8(perGhosts) {
		cell := &cells[(*next-1-i)%perGhosts]
		if *cell>>tagShift == tag(hash) {
			found = ghost{ofMain: *cell&mainBit != 0, age: g.age(*cell)}
			*cell = 0
			return found, true
		}
	}
	return ghost{}, false
}
