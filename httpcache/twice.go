package httpcache

import (
	"context"
	"reflect"

	"github.com/mayflycache/mayfly/internal/client/flight"
)

// A request whose handler is being asked may meet the cache again further in: two routers have it among their middlewares, or an
// error page goes through the router once more. It would wait for the answer that waits for it. So the context of each
// request that is handed to a handler says what it was asked for, and what is met again passes.

// asking is what a handler was asked for, and for what the one around it was.
type asking struct {
	store  any
	key    string
	flight *flight.Flight[outcome] // of those who wait for it; nil: nobody does
	around *asking
}

type askingKey struct{}

// asking is ctx for a handler that is asked for key, for those who wait for f, too.
func (c *Cache) asking(ctx context.Context, key string, f *flight.Flight[outcome]) context.Context {
	around, _ := ctx.Value(askingKey{}).(*asking)
	return context.WithValue(ctx, askingKey{}, &asking{c.store(), key, f, around})
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
	around, _ := ctx.Value(askingKey{}).(*asking)
	for ; around != nil; around = around.around {
		if around.key == string(key) && around.store == c.store() {
			return true
		}
	}
	return false
}
