package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// positions is what LPOS was asked for.
type positions struct {
	rank    int   // which match is the first that counts; negative: from the end
	count   int64 // how many to reply; 0: all; -1: one, not as an array
	looksAt int64 // MAXLEN; 0: all
}

func lposCommand(c *call) {
	o, ok := c.positionOptions()
	if !ok {
		return
	}
	l, ok := c.readList(c.args[1])
	if !ok {
		return
	}
	var found []int64
	if l != nil {
		found = o.find(l, c.args[2])
	}
	if o.count < 0 {
		if len(found) > 0 {
			c.out.Int(found[0])
		} else {
			c.out.Null()
		}
		return
	}
	c.out.Array(len(found))
	for _, i := range found {
		c.out.Int(i)
	}
}

func (c *call) positionOptions() (o positions, ok bool) {
	o.rank, o.count = 1, -1
	for i := 3; i < len(c.args); i += 2 {
		more := i+1 < len(c.args)
		switch {
		case c.is(i, "RANK") && more:
			if o.rank, ok = c.signed(i + 1); !ok {
				return o, false
			}
			if o.rank == 0 {
				c.fail("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")
				return o, false
			}
		case c.is(i, "COUNT") && more:
			if o.count, ok = c.notNegative(i+1, "ERR COUNT can't be negative"); !ok {
				return o, false
			}
		case c.is(i, "MAXLEN") && more:
			if o.looksAt, ok = c.notNegative(i+1, "ERR MAXLEN can't be negative"); !ok {
				return o, false
			}
		default:
			c.fail(errSyntax)
			return o, false
		}
	}
	return o, true
}

// notNegative reads argument i as a number from 0, or replies this text.
func (c *call) notNegative(i int, text string) (n int64, ok bool) {
	if n, ok = c.intOr(i, text); ok && n < 0 {
		c.fail(text)
		return 0, false
	}
	return n, ok
}

// find returns the indexes that are asked for, in the direction of the search.
func (o positions) find(l *values.ListValue, b []byte) (found []int64) {
	n := l.Len()
	at, step, skip := 0, 1, o.rank-1
	each := l.EachFrom
	if o.rank < 0 {
		at, step, skip, each = n-1, -1, -o.rank-1, l.EachBack
	}
	looks := int64(0)
	each(at, func(e []byte) bool {
		if string(e) == string(b) {
			if skip--; skip < 0 {
				found = append(found, int64(at))
				if o.count < 0 || int64(len(found)) == o.count {
					return false
				}
			}
		}
		at += step
		looks++
		return looks != o.looksAt
	})
	return found
}
