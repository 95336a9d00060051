package engine

// options walks over the options of a command, which stand in any order from some argument on:
//
//	for o := c.options(3); o.more(); {
//		switch {
//		case o.word("REPLACE", 0):
//			replace = true
//		case o.word("DB", 1):
//			target = c.database(o.next())
//		default:
//			c.fail(errSyntax)
//		}
//	}
type options struct {
	c  *call
	at int // the argument in hand
}

func (c *call) options(from int) options { return options{c, from - 1} }

// more takes the next argument in hand; false if there is none, or the command has failed.
func (o *options) more() bool {
	o.at++
	return o.at < len(o.c.args) && !o.c.failed
}

// word reports whether the argument in hand is this word, given in upper case, and at least so many follow it.
func (o *options) word(word string, follow int) bool {
	return o.at+follow < len(o.c.args) && o.c.is(o.at, word)
}

// next takes the next argument in hand and returns its index.
func (o *options) next() int {
	o.at++
	return o.at
}
