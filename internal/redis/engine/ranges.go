package engine

import (
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// rangeCommands read and write parts of strings.
var rangeCommands = []Command{
	{Name: "append", Arity: 3, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: appendCommand},
	{Name: "strlen", Arity: 2, Flags: ReadOnly | Fast, Cats: CatString, Keys: oneKey, run: strlenCommand},
	{Name: "setrange", Arity: 4, Flags: Write | DenyOOM, Cats: CatString, Keys: oneKey, run: setrangeCommand},
	{Name: "getrange", Arity: 4, Flags: ReadOnly, Cats: CatString, Keys: oneKey, run: getrangeCommand},
	{Name: "substr", Arity: 4, Flags: ReadOnly, Cats: CatString, Keys: oneKey, run: getrangeCommand},
	{Name: "lcs", Arity: -3, Flags: ReadOnly, Cats: CatString, Keys: twoKeys, run: lcsCommand},
}

// fits reports whether a string may become size+more bytes long; if not, the command fails.
func (c *call) fits(size, more int64) bool {
	if total := size + more; total < size || total > c.e.settings.maxBulk {
		c.fail(errStringTooLong)
		return false
	}
	return true
}

func appendCommand(c *call) {
	key, tail := c.args[1], c.args[2]
	o := c.writeString(key)
	if c.failed {
		return
	}
	if o == nil {
		o = c.addString(key, tail, encodingOf(tail))
	} else {
		if !c.fits(int64(len(o.str)), int64(len(tail))) {
			return
		}
		o.str = append(o.str, tail...)
		o.setEncoding(raw)
	}
	c.wrote(key, 1, notifyString, "append")
	c.number(len(o.str))
}

func strlenCommand(c *call) {
	if o := c.readString(c.args[1]); !c.failed {
		c.number(len(textOf(o)))
	}
}

func setrangeCommand(c *call) {
	key, part := c.args[1], c.args[3]
	offset := c.int(2)
	if offset < 0 {
		c.fail("ERR offset is out of range")
	}
	o := c.writeString(key)
	if c.failed {
		return
	}
	if len(part) == 0 { // nothing is written or created
		c.number(len(textOf(o)))
		return
	}
	if !c.fits(offset, int64(len(part))) {
		return
	}
	if o == nil {
		o = c.addString(key, nil, raw)
	}
	o.str = values.Overwrite(o.str, int(offset), part)
	o.setEncoding(raw)
	c.wrote(key, 1, notifyString, "setrange")
	c.number(len(o.str))
}

func getrangeCommand(c *call) {
	from, to := c.span(2)
	s := textOf(c.readString(c.args[1]))
	if !c.failed {
		lo, hi := values.Range(from, to, len(s))
		c.out.Bulk(s[lo:hi])
	}
}

func lcsCommand(c *call) {
	var texts [2][]byte
	wrong := false
	for i := range texts {
		if o := c.read(c.args[1+i]); o != nil {
			texts[i], wrong = o.str, wrong || o.kind() != values.String
		}
	}
	if wrong {
		c.fail("ERR The specified keys must contain string values")
		return
	}
	var onlyLen, idx, withLen bool
	var minLen int64
	for o := c.options(3); o.more(); {
		switch {
		case o.word("IDX", 0):
			idx = true
		case o.word("LEN", 0):
			onlyLen = true
		case o.word("WITHMATCHLEN", 0):
			withLen = true
		case o.word("MINMATCHLEN", 1):
			minLen = c.int(o.next())
		default:
			c.fail(errSyntax)
		}
	}
	if idx && onlyLen {
		c.fail("ERR If you want both the length and indexes, please just use IDX.")
	}
	a, b := texts[0], texts[1]
	if int64(len(a)+1)*int64(len(b)+1) > c.e.settings.maxBulk/4 {
		c.fail("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
	}
	if c.failed {
		return
	}
	common, matches := values.LCS(a, b)
	switch {
	case onlyLen:
		c.number(len(common))
	case idx:
		c.matches(matches, len(common), minLen, withLen)
	default:
		c.out.Bulk(common)
	}
}

// matches replies with LCS's IDX form.
func (c *call) matches(all []values.Match, length int, minLen int64, withLen bool) {
	c.out.Map(2)
	c.out.BulkString("matches")
	start, n := c.out.Mark(), 0
	for _, m := range all {
		if int64(m.Len) < minLen {
			continue
		}
		n++
		if withLen {
			c.out.Array(3)
		} else {
			c.out.Array(2)
		}
		for _, from := range [...]int{m.A, m.B} {
			c.out.Array(2)
			c.number(from)
			c.number(from + m.Len - 1)
		}
		if withLen {
			c.number(m.Len)
		}
	}
	c.out.ArrayAt(start, n)
	c.out.BulkString("len")
	c.number(length)
}
