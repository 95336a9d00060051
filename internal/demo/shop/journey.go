package shop

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// source is the origin of an answer.
type source string

const (
	fromMemory source = "memory"
	fromRedis  source = "Redis"
	fromStale  source = "stale"
	waited     source = "database"
	failed     source = "failed"
)

// productHeader says, on a page, where its handler got the product from. It is stored with the page.
const productHeader = "X-Product-From"

// journey collects what the caches report about one request. A copy in the process's memory is served without a report.
type journey struct{ redis, stale, waited atomic.Bool }

type journeyKey struct{}

// embark returns a context whose caches report to j, and to no other journey.
func embark(ctx context.Context) (context.Context, *journey) {
	j := new(journey)
	return context.WithValue(ctx, journeyKey{}, j), j
}

// observe receives the caches' reports.
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
	case mayfly.KindJoin, mayfly.KindWait: // another caller's load, in this process or in another
		j.waited.Store(true)
	}
}

// product returns where a product came from. A caller that waited for a load has waited for the database, even if the product then came from Redis.
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

// page returns where a page came from. A page that was made for this request, or for another request that this one waited for, came from
// the same place as its product.
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

// got counts pages by where they came from.
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

// take returns the counts since the last call.
func (g *got) take() panel.Got {
	return panel.Got{FromMemory: g.memory.Swap(0), FromRedis: g.redis.Swap(0), Stale: g.stale.Swap(0), Waited: g.waited.Swap(0), Failed: g.failed.Swap(0)}
}
