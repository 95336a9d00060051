package httpcache

import (
	"context"
	"reflect"
)

// A request may meet the cache again inside its own handler: two routers have the cache among their middlewares, or an error page goes through
// the router once more. There it would wait for the answer that waits for it. So the context of each request that is handed to a handler says
// what the handler was asked for, and a request for the same passes through.

// asking records what a handler was asked for, and what the handler around it was asked for.
type asking struct {
	store  any
	key    string
	brings []any // what its waiters wait for: see waits
	around *asking
}

type askingKey struct{}

// inside returns what the request with ctx is part of, or nil if no handler makes that request.
func inside(ctx context.Context) *asking {
	a, _ := ctx.Value(askingKey{}).(*asking)
	return a
}

// asking returns the context for a handler that is asked for key, and whose answer also fills what others wait for.
func (c *Cache) asking(ctx context.Context, key string, fill filling) context.Context {
	return context.WithValue(ctx, askingKey{}, &asking{c.store(), key, fill.brings(), inside(ctx)})
}

// store distinguishes caches that keep the same keys in different places.
func (c *Cache) store() any {
	if reflect.TypeOf(c.ns.Redis).Comparable() {
		return c.ns.Redis
	}
	return c
}

// asked reports whether a surrounding handler is already being asked for key, by this cache or by another one with the same client and prefix.
func (c *Cache) asked(ctx context.Context, key []byte) bool {
	for around := inside(ctx); around != nil; around = around.around {
		if around.key == string(key) && around.store == c.store() {
			return true
		}
	}
	return false
}
