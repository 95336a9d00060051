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

// Catalogue is how many articles the shop's catalogue has, what its database can do, and what a crowd asks for. Zeros are the figures of
// docs/overload.md, where the crowd asks for four times as much as the database can do.
type Catalogue struct {
	Articles int           // zero is 2,000
	Rate     int           // requests a second, each for an article by chance; zero is 800
	Workers  int           // queries that the database works on at once; zero is 6
	Query    time.Duration // what each takes; zero is 30 ms, so that 6 workers do 200 a second
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
	crowdStays   = time.Minute            // after Redis was emptied last, or a switch was turned
	crowdIs      = 1000                   // who ask at once, at most: beyond that one gives up at once
)

// catalogue is what the shop has beside its eight products: many articles, in a database that cannot load all of them at once. Eight
// products are loaded in a moment whatever the cache does; what an empty Redis means shows here. It costs nothing while there is no
// crowd, and the crowd comes when the button is pressed.
type catalogue struct {
	Catalogue
	origin            *origin
	answered, givenUp atomic.Int64
	asking            atomic.Int64 // who wait for an answer

	mu     sync.Mutex // guards what follows
	stock  *stock     // nil: no crowd
	news   bool       // the crowd asks for what is in no cache yet
	leaves time.Time  // when the crowd does
}

func newCatalogue(c Catalogue) *catalogue {
	c.Articles, c.Rate, c.Workers, c.Query = cmp.Or(c.Articles, 2000), cmp.Or(c.Rate, 800), cmp.Or(c.Workers, 6), cmp.Or(c.Query, 30*time.Millisecond)
	return &catalogue{Catalogue: c, origin: newOrigin(c.Workers, c.Query)}
}

// stock is the catalogue's cache, as the switches are.
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

// close waits until nobody uses it any more, and cancels the loads that are left: nobody wants them.
func (k *stock) close() {
	k.using.Wait()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	k.cache.Close(now)
	k.rdb.Close()
}

// emptyRedis removes all that is in Redis, before a crowd that asks for it. The crowd is let in, or stays on.
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

// slowDatabase makes both databases slow for a while, and lets a crowd in that asks for what no cache has: three quarters of what the
// catalogue's database can do while it is not slow. Redis is no help against that; it is a matter of what the database is given to do.
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

// letCrowdIn lets a crowd in, or has the one that is there stay longer; s.changing is held.
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

// restock has the crowd that is there ask another cache if the switches for it were turned; s.changing is held.
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
