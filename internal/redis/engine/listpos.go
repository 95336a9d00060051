package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// positions holds the arguments of LPOS.
type positions struct {
	rank    int   // the first match that counts; negative: from the end
	count   int64 // how many matches to reply; 0: all; -1: one, not as an array
	looksAt int64 // MAXLEN; 0: all
}

func lposCommand(c *call) {
	o := c.positionOptions()
	l := readAs[*values.ListValue](c, c.args[1])
	if c.failed {
		return
	}
	found := o.find(l, c.args[2])
	switch {
	case o.count >= 0:
		c.out.Array(len(found))
		for _, i := range found {
			c.out.Int(i)
		}
	case len(found) > 0:
		c.out.Int(found[0])
	default:
		c.out.Null()
	}
}

func (c *call) positionOptions() positions {
	o := positions{rank: 1, count: -1}
	for words := c.options(3); words.more(); {
		switch {
		case words.word("RANK", 1):
			if o.rank = c.signed(words.next()); o.rank == 0 {
				c.fail("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")
			}
		case words.word("COUNT", 1):
			o.count = c.intFrom(words.next(), 0, "ERR COUNT can't be negative")
		case words.word("MAXLEN", 1):
			o.looksAt = c.intFrom(words.next(), 0, "ERR MAXLEN can't be negative")
		default:
			c.fail(errSyntax)
		}
	}
	return o
}

// find returns the indexes of the matches, in the direction of the search.
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
