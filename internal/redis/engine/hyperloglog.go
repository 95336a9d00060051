package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// hyperLogLogCommands estimate how many distinct elements were added.
var hyperLogLogCommands = []Command{
	{Name: "pfadd", Arity: -2, Flags: Write | DenyOOM | Fast, Cats: CatHyperLogLog, Keys: oneKey, run: pfaddCommand},
	{Name: "pfcount", Arity: -2, Flags: ReadOnly | MayReplicate, Cats: CatHyperLogLog, Keys: allKeys, run: pfcountCommand},
	{Name: "pfmerge", Arity: -2, Flags: Write | DenyOOM, Cats: CatHyperLogLog, Keys: allKeys, run: pfmergeCommand},
}

const (
	errNotHyperLogLog    = "WRONGTYPE Key is not a valid HyperLogLog string value."
	errBrokenHyperLogLog = "INVALIDOBJ Corrupted HLL object detected"
)

// hyperLogLog returns what o holds, or nil if o is nil. The command fails if o holds something else.
func (c *call) hyperLogLog(o *object) values.HyperLogLog {
	h := values.HyperLogLog(textOf(c.typed(o, values.String)))
	if o != nil && !h.Valid() {
		c.fail(errNotHyperLogLog)
	}
	return h
}

func pfaddCommand(c *call) {
	key := c.args[1]
	o := c.write(key)
	h := c.hyperLogLog(o)
	if c.failed {
		return
	}
	updates := 0
	if o == nil {
		h = values.NewHyperLogLog()
		o = c.addString(key, h, raw)
		updates++
	}
	o.setEncoding(raw)
	for _, element := range c.args[2:] {
		next, changed, ok := h.Add(element)
		if !ok { // elements already added stay, but nobody is notified
			o.setString(h, raw)
			c.fail(errBrokenHyperLogLog)
			return
		}
		if h = next; changed {
			updates++
		}
	}
	if updates > 0 {
		o.setString(h, raw)
		c.wrote(key, updates, notifyString, "pfadd")
	}
	c.yes(updates > 0)
}

// pfcountCommand stores the count of a single key with it. For Redis that is a change, although PFCOUNT is a read command.
func pfcountCommand(c *call) {
	if len(c.args) > 2 {
		if r, _ := c.merged(c.args[1:]); !c.failed {
			c.out.Int(r.Count())
		}
		return
	}
	key := c.args[1]
	o := c.read(key)
	h := c.hyperLogLog(o)
	switch {
	case c.failed:
		return
	case o == nil:
		c.out.Int(0)
		return
	}
	o.setEncoding(raw)
	if n, ok := h.Cached(); ok {
		c.out.Int(n)
		return
	}
	var r values.Registers
	if !r.Merge(h) {
		c.fail(errBrokenHyperLogLog)
		return
	}
	n := r.Count()
	h.Cache(n)
	c.changed(key, 1)
	c.out.Int(n)
}

// merged returns the union of the HyperLogLogs at keys, and whether one of them is dense.
func (c *call) merged(keys [][]byte) (r *values.Registers, dense bool) {
	r = new(values.Registers)
	for _, key := range keys {
		h := c.hyperLogLog(c.read(key))
		if h == nil || c.failed {
			continue
		}
		dense = dense || h.Dense()
		if !r.Merge(h) {
			c.fail(errBrokenHyperLogLog)
		}
	}
	return r, dense
}

// pfmergeCommand adds to the destination, which keeps its deadline.
func pfmergeCommand(c *call) {
	key := c.args[1]
	r, dense := c.merged(c.args[1:])
	if c.failed {
		return
	}
	if o := c.live(key); o == nil {
		c.addString(key, r.MergeInto(nil, dense), raw)
	} else {
		o.setString(r.MergeInto(o.str, dense), raw)
	}
	c.wrote(key, 1, notifyString, "pfadd")
	c.ok()
}
