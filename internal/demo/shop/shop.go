// Package shop is a small shop: several processes over a slow database, and simulated shoppers. While it is open, each use of a cache can be
// switched between handwritten code and mayfly, and its Redis can be killed.
//
//	s, err := shop.Open(ctx, shop.Options{Redis: &redis.Options{Addr: "localhost:6379"}})
//	s.Set(ctx, settings)     // switches and sliders
//	s.Press(ctx, panel.ExpireEverything)
//	f := s.Figures(ctx)      // since the last time
//	http.Handle("/shop/", http.StripPrefix("/shop", s))
//
// err = s.Close(ctx)       // removes what it wrote to Redis
package shop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// Options set up a shop. Redis is required.
type Options struct {
	// Redis says how to reach the Redis. Each process of the shop makes its own clients for it.
	Redis *redis.Options

	// Settings are the initial switches and sliders. Zero is panel.Default.
	Settings panel.Settings

	// NoFields says that this Redis does not support TTLs of hash fields: the switch for them stays off.
	NoFields bool

	// RedisTimeout is how long mayfly may wait for Redis. Zero is its default.
	RedisTimeout time.Duration

	// Keep makes Close leave in Redis what the shop wrote, carts and logins included, for the next run. Keys without a TTL then get one.
	Keep bool

	// Own says that nobody else uses this Redis, so a button may empty it completely. From any other Redis the shop removes only its own keys.
	Own bool

	// Catalogue is the size of the catalogue. Zero is what docs/overload.md measures.
	Catalogue Catalogue

	// Reviews is the number of reviews of a product. They are most of the cost of its page. Zero is 60.
	Reviews int

	// Observer receives the library's events, in addition to the shop itself.
	Observer mayfly.Observer
}

// Shop is open until Close. Its methods are safe for concurrent use.
type Shop struct {
	opt       Options // its Observer combines the shop's own and the caller's
	line      *line
	watcher   *redis.Client // for figures and buttons: not over the breakable line
	database  *database
	catalogue *catalogue
	counters
	look      look
	addresses sync.Map // of the present shoppers: name to the time.Time of the login

	changing sync.Mutex // held to change settings; guards the fields below
	closed   bool
	shoppers []context.CancelFunc // one per shopper

	mu         sync.Mutex // guards the fields below, which only the holder of changing writes
	settings   panel.Settings
	generation int // of the processes: carts do not survive a change
	processes  []*process

	ctx     context.Context // of the shoppers
	cancel  context.CancelFunc
	running sync.WaitGroup // shoppers, and processes that close
}

// Open opens a shop and lets the shoppers in.
func Open(ctx context.Context, o Options) (*Shop, error) {
	if o.Redis == nil {
		return nil, errors.New("shop: Options.Redis is nil")
	}
	if err := o.Catalogue.validate(); err != nil {
		return nil, fmt.Errorf("shop: Options.Catalogue: %w", err)
	}
	if o.Settings == (panel.Settings{}) {
		o.Settings = panel.Default
	}
	ro := *o.Redis
	if ro.Dialer == nil {
		ro.Dialer = redis.NewDialer(&ro)
	}
	o.Redis = &ro
	s := &Shop{opt: o, line: newLine(ro.Dialer), watcher: redis.NewClient(&ro), database: newDatabase(cmp.Or(o.Reviews, 60)), catalogue: newCatalogue(o.Catalogue)}
	s.opt.Observer = mayfly.Tee(mayfly.ObserverFunc(s.observe), o.Observer)
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := s.Set(ctx, o.Settings); err != nil {
		s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// Settings returns the present switches and sliders.
func (s *Shop) Settings() panel.Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settings
}

// HasFields reports whether the switch for fields can be on.
func (s *Shop) HasFields() bool { return !s.opt.NoFields }

// Set sets switches and sliders. If that requires new processes, the old ones finish the requests they have begun.
func (s *Shop) Set(ctx context.Context, next panel.Settings) error {
	if err := next.Validate(); err != nil {
		return fmt.Errorf("shop: %w", err)
	}
	if s.opt.NoFields {
		next.Fields = false
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed {
		return fmt.Errorf("shop: %w", mayfly.ErrClosed)
	}
	if err := s.restock(next); err != nil {
		return fmt.Errorf("shop: %w", err)
	}
	s.database.set(next.Query, next.Connections)
	others, kept := needsOthers(s.settings, next), 0
	if !others {
		kept = min(len(s.processes), next.Processes)
	}
	processes, old := slices.Clone(s.processes[:kept]), s.processes[kept:]
	for len(processes) < next.Processes {
		p, err := s.startProcess(ctx, next.Effective())
		if err != nil {
			return fmt.Errorf("shop: %w", err)
		}
		processes = append(processes, p)
	}
	s.mu.Lock()
	s.settings, s.processes = next, processes
	if others && len(old) > 0 {
		s.generation++
		s.addresses.Clear() // earlier shoppers logged in under the old settings
	}
	s.mu.Unlock()
	for _, p := range old {
		s.running.Go(func() { p.close(context.WithoutCancel(ctx)) })
	}
	s.letIn(next.Shoppers)
	return nil
}

// Press presses a button, and describes what happened in a few words.
func (s *Shop) Press(ctx context.Context, b panel.Button) (string, error) {
	switch b {
	case panel.ExpireEverything:
		return "everything expires", s.expireEverything(ctx)
	case panel.FillAtOnce:
		return "all is filled at once", s.fillAtOnce(ctx)
	case panel.SlowDatabase:
		return "the database is slow", s.slowDatabase()
	case panel.EmptyRedis:
		return "Redis is emptied", s.emptyRedis(ctx)
	case panel.KillRedis:
		return s.toggle(panel.Killed, "Redis killed"), nil
	case panel.HangRedis:
		return s.toggle(panel.Hung, "Redis hangs"), nil
	case panel.TwoMore:
		next := s.Settings()
		next.Processes += 2
		return fmt.Sprintf("%d processes", next.Processes), s.Set(ctx, next)
	}
	return "", fmt.Errorf("shop: there is no button %q", b)
}

// toggle breaks the line to Redis in this way, or mends it if it is already broken this way, and returns what it did.
func (s *Shop) toggle(to panel.Health, says string) string {
	if s.line.is() == to {
		to, says = panel.Up, panel.RedisIsBack
	}
	s.line.set(to)
	return says
}

// expireEverything gives everything that can be loaded again a millisecond to live.
func (s *Shop) expireEverything(ctx context.Context) error {
	for _, match := range []string{byHand + "product:*", byMayfly + "product:*", pagePrefix + "*"} {
		if err := s.each(ctx, match, func(p redis.Pipeliner, key string) { p.PExpire(ctx, key, time.Millisecond) }); err != nil {
			return fmt.Errorf("shop: %w", err)
		}
	}
	return nil
}

// fillAtOnce stores every product anew, as a nightly job or a deployment does. Whether TTLs spread that shows when they expire.
func (s *Shop) fillAtOnce(ctx context.Context) error {
	p, _ := s.borrow()
	if p == nil {
		return fmt.Errorf("shop: %w", mayfly.ErrClosed)
	}
	defer p.using.Done()
	all := make(map[int]product)
	for id := range products {
		all[id] = productOf(id, s.database.reviews)
	}
	if err := p.products.Fill(ctx, all); err != nil {
		return fmt.Errorf("shop: %w", err)
	}
	return nil
}

// each does something to every key that matches.
func (s *Shop) each(ctx context.Context, match string, do func(redis.Pipeliner, string)) error {
	p := s.watcher.Pipeline()
	keys := s.watcher.Scan(ctx, 0, match, 1000).Iterator()
	for keys.Next(ctx) {
		do(p, keys.Val())
	}
	_, err := p.Exec(ctx)
	return errors.Join(keys.Err(), err)
}

// ServeHTTP passes the request to one of the processes.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, _ := s.borrow()
	if p == nil {
		http.Error(w, "the shop is closed", http.StatusServiceUnavailable)
		return
	}
	defer p.using.Done()
	if forPerson(r) {
		p.withParts(w, r)
	} else {
		p.serve.ServeHTTP(w, r)
	}
}

// borrow returns one of the processes, which stays open until using.Done, and its generation.
func (s *Shop) borrow() (*process, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.processes) == 0 {
		return nil, 0
	}
	p := s.processes[rand.IntN(len(s.processes))]
	p.using.Add(1)
	return p, s.generation
}

// Close closes the shop, and removes its keys from Redis. Closing again does nothing.
func (s *Shop) Close(ctx context.Context) error {
	s.line.set(panel.Up)
	s.cancel()
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.mu.Lock()
	old := s.processes
	s.processes = nil
	s.mu.Unlock()
	for _, p := range old {
		s.running.Go(func() { p.close(ctx) })
	}
	s.running.Wait()
	err := s.each(ctx, prefix+"*", func(p redis.Pipeliner, key string) {
		if s.opt.Keep {
			p.ExpireNX(ctx, key, loginLives)
		} else {
			p.Unlink(ctx, key)
		}
	})
	if err = errors.Join(err, s.watcher.Close()); err != nil {
		return fmt.Errorf("shop: close: %w", err)
	}
	return nil
}

// counters are the raw counts behind the figures.
type counters struct {
	got
	rendered                 atomic.Int64
	carts, lost, unavailable atomic.Int64
	took                     latency
}
