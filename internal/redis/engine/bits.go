package engine

import (
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// bitCommands treat strings as arrays of bits. BITFIELD is in bitfields.go.
var bitCommands = []Command{
	{Name: "setbit", Arity: 4, Flags: Write | DenyOOM, Cats: CatBitmap, Keys: oneKey, run: setbitCommand},
	{Name: "getbit", Arity: 3, Flags: ReadOnly | Fast, Cats: CatBitmap, Keys: oneKey, run: getbitCommand},
	{Name: "bitcount", Arity: -2, Flags: ReadOnly, Cats: CatBitmap, Keys: oneKey, run: bitcountCommand},
	{Name: "bitpos", Arity: -3, Flags: ReadOnly, Cats: CatBitmap, Keys: oneKey, run: bitposCommand},
	{Name: "bitop", Arity: -4, Flags: Write | DenyOOM, Cats: CatBitmap, Keys: Keys{First: 2, Last: -1, Step: 1}, run: bitopCommand},
	{Name: "bitfield", Arity: -2, Flags: Write | DenyOOM, Cats: CatBitmap, Keys: oneKey, run: bitfieldCommand},
	{Name: "bitfield_ro", Arity: -2, Flags: ReadOnly | Fast, Cats: CatBitmap, Keys: oneKey, run: bitfieldCommand},
}

const (
	errBit       = "ERR bit is not an integer or out of range"
	errBitOffset = "ERR bit offset is not an integer or out of range"
)

// bitOffset reads argument i as a bit's position, which must lie within the longest allowed string. In a BITFIELD "#3" is the field with
// index 3: bit 3*width.
func (c *call) bitOffset(i, width int) int64 {
	text, unit := c.args[i], int64(1)
	if width > 0 && len(text) > 1 && text[0] == '#' {
		text, unit = text[1:], int64(width)
	}
	n, ok := values.ParseInt(text)
	n *= unit
	if !ok || n < 0 || n>>3 >= c.e.settings.maxBulk {
		c.fail(errBitOffset)
	}
	return n
}

// bitsFor returns the object of key for writing bits up to last, and creates it or pads it with zeros as needed.
func (c *call) bitsFor(o *object, key []byte, last int64) *object {
	if o == nil {
		o = c.addString(key, nil, raw)
	}
	if need := int(last>>3) + 1; need > len(o.str) {
		o.str = values.Grow(o.str, need)
	}
	o.setEncoding(raw)
	return o
}

func setbitCommand(c *call) {
	key := c.args[1]
	at := c.bitOffset(2, 0)
	bit := c.intOr(3, errBit)
	if bit&^1 != 0 {
		c.fail(errBit)
	}
	o := c.writeString(key)
	if c.failed {
		return
	}
	grows := o == nil || int64(len(o.str)) <= at>>3
	o = c.bitsFor(o, key, at)
	old := values.Bit(o.str, at)
	if grows || old != byte(bit) { // otherwise nothing changes, and nobody is notified
		values.PutBit(o.str, at, byte(bit))
		c.wrote(key, 1, notifyString, "setbit")
	}
	c.number(int(old))
}

func getbitCommand(c *call) {
	at := c.bitOffset(2, 0)
	o := c.readString(c.args[1])
	if !c.failed {
		c.number(int(values.Bit(textOf(o), at)))
	}
}

// bitRange is the part of a string that BITCOUNT and BITPOS look at, as sent: inclusive, and counted from the end where negative.
type bitRange struct {
	from, to   int64
	bits       bool // counted in bits, not bytes
	toWasGiven bool
}

// bitRange reads start, end and unit from argument i on. BITPOS may leave out the end (openEnd).
func (c *call) bitRange(i int, openEnd bool) (r bitRange) {
	r.to = -1
	n := len(c.args) - i
	switch {
	case n == 0:
		return r
	case n == 1 && !openEnd, n > 3:
		c.fail(errSyntax)
	}
	r.from = c.int(i)
	r.bits = n > 2 && c.is(i+2, "BIT")
	wrongUnit := n > 2 && !r.bits && !c.is(i+2, "BYTE")
	if wrongUnit && openEnd { // BITPOS checks the unit first
		c.fail(errSyntax)
	}
	if n > 1 {
		r.toWasGiven = true
		r.to = c.int(i + 1)
	}
	if wrongUnit {
		c.fail(errSyntax)
	}
	return r
}

// of returns the half-open range of bits in a string of n bytes; span resolves negative and excessive bounds.
func (r bitRange) of(n int, span func(from, to int64, n int) (lo, hi int)) (lo, hi int64) {
	if r.bits {
		a, b := span(r.from, r.to, n*8)
		return int64(a), int64(b)
	}
	a, b := span(r.from, r.to, n)
	return int64(a) * 8, int64(b) * 8
}

func bitcountCommand(c *call) {
	r := c.bitRange(2, false)
	s := textOf(c.readString(c.args[1]))
	if !c.failed {
		lo, hi := r.of(len(s), values.Range)
		c.out.Int(values.CountBits(s, lo, hi))
	}
}

func bitposCommand(c *call) {
	bit := c.int(2)
	if bit&^1 != 0 {
		c.fail("ERR The bit argument must be 1 or 0.")
	}
	r := c.bitRange(3, true)
	o := c.readString(c.args[1])
	if c.failed {
		return
	}
	if o == nil { // a missing key counts as endless zeros
		c.out.Int(-bit)
		return
	}
	lo, hi := r.of(len(o.str), values.Span)
	if lo == hi {
		c.out.Int(-1)
		return
	}
	at := values.FindBit(o.str, byte(bit), lo, hi)
	if at < 0 && bit == 0 && !r.toWasGiven { // the first of the zeros assumed after the string
		at = int64(len(o.str)) * 8
	}
	c.out.Int(at)
}

func bitopCommand(c *call) {
	op, ok := values.BitOpNamed(c.args[1])
	if !ok {
		c.fail(errSyntax)
	}
	target, sources := c.args[2], c.args[3:]
	if op == values.Not && len(sources) != 1 {
		c.fail("ERR BITOP NOT must be called with a single source key.")
	}
	texts := make([][]byte, len(sources))
	for i, key := range sources {
		texts[i] = textOf(c.readString(key))
	}
	if c.failed {
		return
	}
	result := op.Apply(texts)
	if len(result) > 0 {
		c.setString(c.write(target), target, result, false).setEncoding(raw)
		c.wrote(target, 1, notifyString, "set")
	} else {
		c.delete(target) // a dead key too
	}
	c.number(len(result))
}
