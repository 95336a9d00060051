package engine

// options walks over a command's options, which may come in any order:
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
	at int // the current argument
}

func (c *call) options(from int) options { return options{c, from - 1} }

// more advances to the next argument; it is false at the end or after an error.
func (o *options) more() bool {
	o.at++
	return o.at < len(o.c.args) && !o.c.failed
}

// word reports whether the current argument is this word, given in upper case, with at least follow arguments after it.
func (o *options) word(word string, follow int) bool {
	return o.at+follow < len(o.c.args) && o.c.is(o.at, word)
}

// next advances to the next argument and returns its index.
func (o *options) next() int {
	o.at++
	return o.at
}
