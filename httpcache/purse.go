package httpcache

import "time"

// purse is what the handler of this request may wait in vain for Redis, in caches of its own: one request has one budget. Where Redis did not
// answer this cache, that is what is left of RedisTimeout.
func (x *exchange) purse() time.Duration {
	most := x.cache.opt.RedisTimeout
	if x.s.unasked == nil {
		return most
	}
	return most - time.Since(x.asked)
}
