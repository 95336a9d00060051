package shop

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/strategy"
	"github.com/mayflycache/mayfly/jitter"
)

// Prefixes of keys. Code by hand and mayfly write different forms, so they must not use the same names.
const (
	prefix        = "mayfly-demo:"
	byHand        = prefix + "hand:"
	byMayfly      = prefix + "cache:"
	loginPrefix   = prefix + "login:"
	visitPrefix   = prefix + "visit:"
	relatedPrefix = prefix + "related:"
	pagePrefix    = byMayfly + "page:"
)

// productPrefix is the prefix of products with these settings.
func productPrefix(s panel.Settings) string {
	if s.Effective().Lease {
		return byMayfly + "product:"
	}
	return byHand + "product:"
}

// strategyOf returns how products are cached.
func strategyOf(s panel.Settings) strategy.Strategy {
	way := strategy.Strategy{Lease: s.Lease, Local: s.Local}
	if s.Jitter {
		way.Jitter = jitter.Default
	}
	if s.Early {
		way.Early = earlyrefresh.XFetch(1)
	}
	return way
}

// needsOthers reports whether processes that run with now must be replaced for next.
func needsOthers(now, next panel.Settings) bool {
	a, b := now.Effective(), next.Effective()
	a.Shoppers, a.Pause, a.Query, a.Connections, a.Admission = b.Shoppers, b.Pause, b.Query, b.Connections, b.Admission
	return a != b
}

// process is one server of the shop, as there would be one per machine, with clients, caches and local copies of its own. In truth all processes
// are in one program.
type process struct {
	shop       *Shop
	rdb        *redis.Client
	products   *strategy.Cache[product]
	carts      carts
	cartPrefix string
	logins     logins
	visits     visits
	pages      pageCache
	serve      http.Handler
	using      sync.WaitGroup // requests in progress; grows only while Shop.mu is held
}

// patience is how long requests for one shopper's own data may take, if mayfly controls that.
const patience = 400 * time.Millisecond

// startProcess starts a process with effective settings.
func (s *Shop) startProcess(ctx context.Context, set panel.Settings) (p *process, err error) {
	p = &process{shop: s, rdb: s.client(set.Mayfly)}
	defer func() {
		if err != nil {
			p.close(ctx)
		}
	}()
	rdb := p.rdb
	connect, cancel := context.WithTimeout(ctx, time.Second) // a Redis that hangs must not prevent the start
	defer cancel()
	p.products, err = strategy.Open(connect, strategyOf(set), strategy.Options{
		Redis: rdb, Name: "products", Prefix: productPrefix(set), TTL: set.TTL, Observer: s.opt.Observer, RedisTimeout: s.opt.RedisTimeout,
	}, s.database.product)
	if err != nil {
		return nil, err
	}
	p.carts, p.logins, p.visits, p.cartPrefix = fixedCarts{rdb}, wholeLogins{rdb}, endlessVisits{rdb}, fixedCartPrefix
	if set.Sliding {
		p.cartPrefix = slidingCartPrefix
		p.carts, err = newSlidingCarts(rdb, s.opt.Observer)
	}
	if set.Fields && err == nil {
		p.logins, err = newFieldLogins(rdb, s.opt.Observer)
	}
	if set.Visits && err == nil {
		p.visits, err = newEndingVisits(rdb, s.opt.Observer)
	}
	if set.Pages && err == nil {
		p.pages, err = newPageCache(connect, s, rdb, set.Local)
	}
	if err != nil {
		return nil, err
	}
	p.serve = p.handler()
	if set.Mayfly {
		p.serve = bounded(p.serve, max(patience, 2*s.opt.RedisTimeout))
	}
	return p, nil
}

// bounded limits the time of requests that are not for pages.
func bounded(next http.Handler, most time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mine" || r.Method == http.MethodPost {
			ctx, cancel := context.WithTimeout(r.Context(), most)
			defer cancel()
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

// close waits until no request uses the process any more, and then closes it.
func (p *process) close(ctx context.Context) {
	p.using.Wait()
	p.pages.close(ctx)
	if p.products != nil {
		p.products.Close(ctx)
	}
	p.rdb.Close()
}

// client returns a new client, over the breakable line. A tuned client waits no longer than a cached answer is worth.
func (s *Shop) client(tuned bool) *redis.Client {
	o := *s.opt.Redis
	o.Dialer = s.line.Dial
	o.PoolSize = max(o.PoolSize, 600)
	if tuned {
		like := mayfly.Must(mayfly.CacheClient(&redis.UniversalOptions{Addrs: []string{"127.0.0.1:6379"}})).(*redis.Client)
		like.Close() // it has not connected to anything
		t := like.Options()
		o.ContextTimeoutEnabled, o.DialTimeout, o.DialerRetries, o.MaxRetries = t.ContextTimeoutEnabled, t.DialTimeout, t.DialerRetries, t.MaxRetries
		o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.PipelinePoolSize = t.ReadTimeout, t.WriteTimeout, t.PoolTimeout, t.PipelinePoolSize
		if s.opt.RedisTimeout > 0 {
			o.DialTimeout, o.ReadTimeout, o.WriteTimeout = s.opt.RedisTimeout, s.opt.RedisTimeout, s.opt.RedisTimeout
		}
	}
	return redis.NewClient(&o)
}
