package shop

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/strategy"
	"github.com/mayflycache/mayfly/jitter"
)

// Catalogue says how many articles the shop's catalogue has, what its database can do, and what a crowd requests. Zeros are the figures of
// docs/overload.md, where the crowd requests four times as much as the database can do.
type Catalogue struct {
	Articles int           // zero is 2,000
	Rate     int           // requests a second, each for a random article; zero is 800
	Workers  int           // queries that the database works on at once; zero is 6
	Query    time.Duration // how long each takes; zero is 30 ms, so that 6 workers do 200 a second
}

func (c Catalogue) validate() error {
	for name, n := range map[string]int64{"Articles": int64(c.Articles), "Rate": int64(c.Rate), "Workers": int64(c.Workers), "Query": int64(c.Query)} {
		if n < 0 {
			return fmt.Errorf("%s must not be negative, got %d: zero is the default", name, n)
		}
	}
	return nil
}

const (
	articleLives = 10 * time.Minute
	slowLasts    = 10 * time.Second
	articleLoad  = 2 * time.Second        // LoadTimeout
	crowdWaits   = 500 * time.Millisecond // for an answer
	crowdStays   = time.Minute            // after Redis was last emptied, or a switch was turned
	crowdIs      = 1000                   // most members of the crowd who wait at once: beyond that, new ones give up at once
)

// catalogue is the second part of the shop, beside its eight products: many articles, in a database that cannot load all of them at once. Eight
// products are loaded in a moment whatever the cache does; the effect of an empty Redis shows here. The catalogue costs nothing while there is no
// crowd, and the crowd arrives when the button is pressed.
type catalogue struct {
	Catalogue
	origin            *origin
	answered, givenUp atomic.Int64
	asking            atomic.Int64 // members of the crowd who wait for an answer

	mu     sync.Mutex // guards the fields below
	stock  *stock     // nil: no crowd
	news   bool       // the crowd requests articles that no cache has yet
	leaves time.Time  // when the crowd leaves
}

func newCatalogue(c Catalogue) *catalogue {
	c.Articles, c.Rate, c.Workers, c.Query = cmp.Or(c.Articles, 2000), cmp.Or(c.Rate, 800), cmp.Or(c.Workers, 6), cmp.Or(c.Query, 30*time.Millisecond)
	return &catalogue{Catalogue: c, origin: newOrigin(c.Workers, c.Query)}
}

// stock is the catalogue's cache, according to the switches.
type stock struct {
	mayfly, admission bool
	rdb               *redis.Client
	cache             *strategy.Cache[string]
	using             sync.WaitGroup // Gets; grows only while catalogue.mu is held, and this is the catalogue's stock
}

func (s *Shop) openStock(set panel.Settings) (*stock, error) {
	set = set.Effective()
	k := &stock{mayfly: set.Mayfly, admission: set.Admission, rdb: s.client(set.Mayfly)}
	way, at := strategy.Plain, byHand
	if set.Mayfly {
		way, at = strategy.Strategy{Lease: true, Jitter: jitter.Default, Unbounded: !set.Admission}, byMayfly
	}
	var err error
	k.cache, err = strategy.Open(s.ctx, way, strategy.Options{
		Redis: k.rdb, Name: "catalogue", Prefix: at + "article:", TTL: articleLives,
		RedisTimeout: s.opt.RedisTimeout, LoadTimeout: articleLoad, Observer: s.opt.Observer,
	}, s.catalogue.origin.query)
	if err != nil {
		k.rdb.Close()
	}
	return k, err
}

// close waits until nobody uses the stock any more, and cancels the loads that are left: nobody wants them.
func (k *stock) close() {
	k.using.Wait()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	k.cache.Close(now)
	k.rdb.Close()
}

// emptyRedis removes everything in Redis, for a crowd that then requests it. It lets the crowd in, or lets it stay longer.
func (s *Shop) emptyRedis(ctx context.Context) (err error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed {
		return fmt.Errorf("shop: %w", mayfly.ErrClosed)
	}
	if s.opt.Own {
		err = s.watcher.FlushAll(ctx).Err()
	} else {
		err = s.each(ctx, prefix+"*", func(p redis.Pipeliner, key string) { p.Unlink(ctx, key) })
	}
	if err == nil {
		err = s.letCrowdIn(false)
	}
	if err != nil {
		return fmt.Errorf("shop: empty Redis: %w", err)
	}
	return nil
}

// slowDatabase makes both databases slow for a while, and lets in a crowd that requests articles no cache has: three quarters of what the
// catalogue's database can do at normal speed. Redis does not help against that; what helps is giving the database no more than it can do.
func (s *Shop) slowDatabase() error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed {
		return fmt.Errorf("shop: %w", mayfly.ErrClosed)
	}
	until := time.Now().Add(slowLasts)
	s.database.slowUntil(until)
	s.catalogue.origin.slowUntil(until)
	if err := s.letCrowdIn(true); err != nil {
		return fmt.Errorf("shop: slow database: %w", err)
	}
	return nil
}

// letCrowdIn lets a crowd in, or lets the present one stay longer; s.changing is held.
func (s *Shop) letCrowdIn(news bool) error {
	c := s.catalogue
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaves, c.news = time.Now().Add(crowdStays), news
	if c.stock != nil {
		return nil
	}
	k, err := s.openStock(s.settings)
	if err != nil {
		return err
	}
	c.stock = k
	s.running.Go(s.crowd)
	return nil
}

// restock makes the present crowd use another cache if the switches for it were turned; s.changing is held.
func (s *Shop) restock(next panel.Settings) error {
	next = next.Effective()
	c := s.catalogue
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.stock
	if old == nil || old.mayfly == next.Mayfly && old.admission == next.Admission {
		return nil
	}
	k, err := s.openStock(next)
	if err != nil {
		return err
	}
	c.stock, c.leaves = k, time.Now().Add(crowdStays)
	s.running.Go(old.close)
	return nil
}
