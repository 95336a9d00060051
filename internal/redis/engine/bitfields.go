package engine

import (
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// bitfieldOp is one GET, SET or INCRBY of BITFIELD.
type bitfieldOp struct {
	field    values.Bitfield
	verb     byte // 'g', 's', 'i'
	operand  int64
	overflow values.Overflow
}

// apply returns the new value of a field that holds old after a SET or INCRBY; ok is false if nothing is to be written.
func (o bitfieldOp) apply(old int64) (next int64, ok bool) {
	if o.verb == 's' {
		return o.field.Fit(o.operand, o.overflow)
	}
	return o.field.Sum(old, o.operand, o.overflow)
}

func bitfieldCommand(c *call) {
	ops, last := c.bitfieldOps()
	if c.failed {
		return
	}
	key := c.args[1]
	if last < 0 {
		s := textOf(c.readString(key))
		if c.failed {
			return
		}
		c.out.Array(len(ops))
		for _, op := range ops {
			c.out.Int(op.field.Get(s))
		}
		return
	}
	if c.cmd.Flags&ReadOnly != 0 {
		c.fail("ERR BITFIELD_RO only supports the GET subcommand")
	}
	o := c.writeString(key)
	if c.failed {
		return
	}
	grows := o == nil || int64(len(o.str)) <= last>>3
	o = c.bitsFor(o, key, last)
	changes := 0
	c.out.Array(len(ops))
	for _, op := range ops {
		old := op.field.Get(o.str)
		if op.verb == 'g' {
			c.out.Int(old)
			continue
		}
		next, ok := op.apply(old)
		switch {
		case !ok:
			c.out.Null()
			continue
		case op.verb == 's':
			c.out.Int(old)
		default:
			c.out.Int(next)
		}
		op.field.Put(o.str, next)
		if grows || old != next {
			changes++
		}
	}
	if changes > 0 {
		c.wrote(key, changes, notifyString, "setbit")
	}
}

// bitfieldOps reads the subcommands of BITFIELD. last is the last bit they write, -1 if they only read.
func (c *call) bitfieldOps() (ops []bitfieldOp, last int64) {
	last = -1
	overflow := values.Wrap
	for o := c.options(2); o.more(); {
		op := bitfieldOp{overflow: overflow}
		switch {
		case o.word("GET", 2):
			op.verb = 'g'
		case o.word("SET", 3):
			op.verb = 's'
		case o.word("INCRBY", 3):
			op.verb = 'i'
		case o.word("OVERFLOW", 1):
			overflow = c.overflow(o.next())
			continue
		default:
			c.fail(errSyntax)
			return nil, 0
		}
		var ok bool
		if op.field, ok = values.ParseBitfield(c.args[o.next()]); !ok {
			c.fail("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
		}
		op.field.At = c.bitOffset(o.next(), op.field.Width)
		if op.verb != 'g' {
			last = max(last, op.field.At+int64(op.field.Width)-1)
			op.operand = c.int(o.next())
		}
		ops = append(ops, op)
	}
	return ops, last
}

func (c *call) overflow(i int) values.Overflow {
	switch {
	case c.is(i, "SAT"):
		return values.Saturate
	case c.is(i, "FAIL"):
		return values.Fail
	case !c.is(i, "WRAP"):
		c.fail("ERR Invalid OVERFLOW type specified")
	}
	return values.Wrap
}
