package httpcache

// A URL of which clients ask for ever new variants would be written to Redis for each of them, and those that are of use
// would leave. So when more than four times MaxVariants of one left within Shared.Pass, and at least 256, new ones are not stored
// until that is over: they are answered by the handler, and what is stored stays.
func (o *Options) flood() int { return max(4*o.MaxVariants, 256) }

// leave counts n variants that left a resource, and reports whether they are too many just now.
func (c *Cache) leave(key string, n int) (began bool) {
	left, most := c.left.CountIn(key, n, c.opt.Shared.Pass), c.opt.flood()
	return left > most && left-n <= most
}
