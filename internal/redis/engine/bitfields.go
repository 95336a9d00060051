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

// apply returns what a SET or INCRBY makes of the field that holds old; ok is false if nothing is to be written.
func (o bitfieldOp) apply(old int64) (next int64, ok bool) {
	if o.verb == 's' {
		return o.field.Fit(o.operand, o.overflow)
	}
	return o.field.Sum(old, o.operand, o.overflow)
}

func bitfieldCommand(c *call) {
	ops, last, ok := c.bitfieldOps()
	if !ok {
		return
	}
	key := c.args[1]
	if last < 0 {
		o, ok := c.readString(key)
		if !ok {
			return
		}
		var s []byte
		if o != nil {
			s = o.str
		}
		c.out.Array(len(ops))
		for _, op := range ops {
			c.out.Int(op.field.Get(s))
		}
		return
	}
	if c.cmd.Flags&ReadOnly != 0 {
		c.fail("ERR BITFIELD_RO only supports the GET subcommand")
		return
	}
	o, ok := c.writeString(key)
	if !ok {
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
		c.changed(key, changes)
		c.notify(notifyString, "setbit", key)
	}
}

// bitfieldOps reads the subcommands of BITFIELD. last is the last bit that they write, -1 if they only read.
func (c *call) bitfieldOps() (ops []bitfieldOp, last int64, ok bool) {
	last = -1
	overflow := values.Wrap
	for i := 2; i < len(c.args); i++ {
		op := bitfieldOp{overflow: overflow}
		switch left := len(c.args) - 1 - i; {
		case c.is(i, "GET") && left >= 2:
			op.verb = 'g'
		case c.is(i, "SET") && left >= 3:
			op.verb = 's'
		case c.is(i, "INCRBY") && left >= 3:
			op.verb = 'i'
		case c.is(i, "OVERFLOW") && left >= 1:
			i++
			if overflow, ok = c.overflow(i); !ok {
				return nil, 0, false
			}
			continue
		default:
			c.fail(errSyntax)
			return nil, 0, false
		}
		if op.field, ok = values.ParseBitfield(c.args[i+1]); !ok {
			c.fail("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
			return nil, 0, false
		}
		if op.field.At, ok = c.bitOffset(i+2, op.field.Width); !ok {
			return nil, 0, false
		}
		i += 2
		if op.verb != 'g' {
			i++
			last = max(last, op.field.At+int64(op.field.Width)-1)
			if op.operand, ok = c.int(i); !ok {
				return nil, 0, false
			}
		}
		ops = append(ops, op)
	}
	return ops, last, true
}

func (c *call) overflow(i int) (values.Overflow, bool) {
	switch {
	case c.is(i, "WRAP"):
		return values.Wrap, true
	case c.is(i, "SAT"):
		return values.Saturate, true
	case c.is(i, "FAIL"):
		return values.Fail, true
	}
	c.fail("ERR Invalid OVERFLOW type specified")
	return 0, false
}
