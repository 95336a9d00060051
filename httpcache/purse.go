package httpcache

import "time"

// purse returns how long the handler of this request may still wait in vain for Redis, in caches of its own: one request has one budget. If Redis
// did not answer this cache, that is the rest of RedisTimeout.
func (x *exchange) purse() time.Duration {
	most := x.cache.opt.RedisTimeout
	if x.s.unasked == nil {
		return most
	}
	return most - time.Since(x.asked)
}
