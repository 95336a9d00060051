package httpcache

import (
	"context"
	"reflect"
)

// A request whose handler is being asked may meet the cache again further in: two routers have it among their middlewares, or an
// error page goes through the router once more. It would wait for the answer that waits for it. So the context of each
// request that is handed to a handler says what it was asked for, and what is met again passes.

// asking is what a handler was asked for, and for what the one around it was.
type asking struct {
	store  any
	key    string
	brings []any // to those who wait for it: see waits
	around *asking
}

type askingKey struct{}

// inside is what a request is a part of; nil: no handler makes it.
func inside(ctx context.Context) *asking {
	a, _ := ctx.Value(askingKey{}).(*asking)
	return a
}

// asking is ctx for a handler that is asked for key, which also fills what others wait for.
func (c *Cache) asking(ctx context.Context, key string, fill filling) context.Context {
	return context.WithValue(ctx, askingKey{}, &asking{c.store(), key, fill.brings(), inside(ctx)})
}

// store tells caches apart that keep the same keys in different places.
func (c *Cache) store() any {
	if reflect.TypeOf(c.ns.Redis).Comparable() {
		return c.ns.Redis
	}
	return c
}

// asked reports whether a handler around is being asked for key already, by this cache or by another one of the same client and prefix.
func (c *Cache) asked(ctx context.Context, key []byte) bool {
	for around := inside(ctx); around != nil; around = around.around {
		if around.key == string(key) && around.store == c.store() {
			return true
		}
	}
	return false
}
