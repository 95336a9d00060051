package shop

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// source is where an answer came from.
type source string

const (
	fromMemory source = "memory"
	fromRedis  source = "Redis"
	fromStale  source = "stale"
	waited     source = "database"
	failed     source = "failed"
)

// productHeader says where a handler had the product from, in the page that it made. It is stored with the page.
const productHeader = "X-Product-From"

// journey notes what the caches tell on the way of one request. A copy in the process's memory answers without a word.
type journey struct{ redis, stale, waited atomic.Bool }

type journeyKey struct{}

// embark returns a context whose caches tell j, and no other.
func embark(ctx context.Context) (context.Context, *journey) {
	j := new(journey)
	return context.WithValue(ctx, journeyKey{}, j), j
}

// observe hears what the caches tell.
func (s *Shop) observe(ctx context.Context, e mayfly.Event) {
	j, ok := ctx.Value(journeyKey{}).(*journey)
	if !ok || e.Namespace != "products" && e.Namespace != "pages" {
		return
	}
	switch e.Kind {
	case mayfly.KindRead:
		switch e.Outcome {
		case mayfly.OutcomeHitRedis:
			j.redis.Store(true)
		case mayfly.OutcomeStale:
			j.stale.Store(true)
		default:
			j.waited.Store(true)
		}
	case mayfly.KindJoin, mayfly.KindWait: // somebody else's load, in this process or in another
		j.waited.Store(true)
	}
}

// product is where a product came from: who waited for a load has waited for the database, also if it came out of Redis then.
func (j *journey) product() source {
	switch {
	case j.waited.Load():
		return waited
	case j.stale.Load():
		return fromStale
	case j.redis.Load():
		return fromRedis
	}
	return fromMemory
}

// page is where a page came from. One that was made for this request, or for another that this one waited for, came from
// where its product did.
func (j *journey) page(status int, h http.Header) source {
	switch kept := strings.Contains(h.Get("Cache-Status"), "; hit"); {
	case status >= 500:
		return failed
	case j.stale.Load():
		return fromStale
	case j.waited.Load() || !kept:
		return source(h.Get(productHeader))
	case j.redis.Load():
		return fromRedis
	}
	return fromMemory
}

// got counts pages by what those who asked for them got.
type got struct{ memory, redis, stale, waited, failed atomic.Int64 }

func (g *got) add(from source) {
	switch from {
	case fromMemory:
		g.memory.Add(1)
	case fromRedis:
		g.redis.Add(1)
	case fromStale:
		g.stale.Add(1)
	case waited:
		g.waited.Add(1)
	default:
		g.failed.Add(1)
	}
}

// take returns what was counted since it was last called.
func (g *got) take() panel.Got {
	return panel.Got{FromMemory: g.memory.Swap(0), FromRedis: g.redis.Swap(0), Stale: g.stale.Swap(0), Waited: g.waited.Swap(0), Failed: g.failed.Swap(0)}
}
