package cacheaside_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// kindOfOrigin is an origin of one kind. It finishes queries without waiters too.
type kindOfOrigin struct {
	kind    string
	count   int // queries that it works on at full speed
	cost    time.Duration
	workers chan struct{}

	mu   sync.Mutex // guards the rest
	rand *rand.Rand
	open int
}

var errRefused = errors.New("too many connections")

func (d *kindOfOrigin) query(ctx context.Context) error {
	d.mu.Lock()
	d.open++
	open, cost := d.open, d.cost
	if d.kind == "lognormal" {
		cost = time.Duration(float64(cost) * math.Exp(1.2*d.rand.NormFloat64()-.72))
	}
	refused := d.kind == "connections" && open > 2*d.count+10
	if refused {
		d.open--
	}
	d.mu.Unlock()
	if refused {
		return errRefused
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if d.kind == "sharing" { // each gets its share, looked at a few times
			for range 4 {
				d.mu.Lock()
				slower := max(1, float64(d.open)/float64(d.count))
				d.mu.Unlock()
				time.Sleep(time.Duration(float64(cost) / 4 * slower))
			}
		} else {
			d.workers <- struct{}{}
			time.Sleep(cost)
			<-d.workers
		}
		d.mu.Lock()
		d.open--
		d.mu.Unlock()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cell is one case of the grid: an empty Redis in front of a database that gets more queries than it can do.
type cell struct {
	kind      string
	capacity  int     // queries a second
	count     int     // that are worked on at a time
	processes int     // caches
	load      float64 // gets a second, as a multiple of the capacity
	keys      int
	wait      time.Duration // of a get
	timeout   time.Duration // of a load
	limit     int
}

func (c cell) String() string {
	return fmt.Sprintf("%s %d/s by %d, %d processes, %.1fx, %d keys, gets wait %v, loads %v", c.kind, c.capacity, c.count, c.processes, c.load, c.keys, c.wait, c.timeout)
}

// draw returns a case.
func draw(seed uint64) cell {
	r := rand.New(rand.NewPCG(seed, 7))
	c := cell{
		kind:      []string{"in order", "sharing", "connections", "lognormal"}[r.IntN(4)],
		capacity:  int(50 * math.Pow(100, r.Float64())),
		processes: 1 << r.IntN(4),
		load:      2 * math.Pow(10, r.Float64()),
		wait:      []time.Duration{500 * time.Millisecond, 2 * time.Second}[r.IntN(2)],
		timeout:   []time.Duration{2 * time.Second, 5 * time.Second}[r.IntN(2)],
	}
	c.count = max(1, int(float64(c.capacity)*[]float64{.005, .02, .1}[r.IntN(3)]))
	c.keys = min(5*c.capacity, 4000)
	return c
}

// play returns how long it took until 99 % of a second's gets were answered, zero for never, and the number of queries by then.
func (c cell) play(t *testing.T) (recovered time.Duration, queries int) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		d := &kindOfOrigin{kind: c.kind, count: c.count, cost: time.Duration(c.count) * time.Second / time.Duration(c.capacity), workers: make(chan struct{}, c.count), rand: rand.New(rand.NewPCG(1, 2))}
		var mu sync.Mutex
		caches := manyProcesses(t, srv, c.processes, cacheaside.Options{LoadTimeout: c.timeout, LoadLimit: c.limit}, func(ctx context.Context) error {
			mu.Lock()
			queries++
			mu.Unlock()
			return d.query(ctx)
		})
		r := rand.New(rand.NewPCG(3, 4))
		ideal := time.Duration(c.keys) * time.Second / time.Duration(c.capacity)
		last := int((3*ideal + 10*time.Second) / time.Second)
		asked, answered := make([]int, last+1), make([]int, last+1)
		var gets sync.WaitGroup
		ripe := int(c.wait/time.Second) + 1
		pause := time.Duration(float64(time.Second) / (c.load * float64(c.capacity)))
		for begun := time.Now(); recovered == 0; time.Sleep(pause) {
			second := int(time.Since(begun) / time.Second)
			if second == last {
				break
			}
			if asked[second] == 0 && second > ripe {
				mu.Lock()
				if s := second - ripe - 1; 100*answered[s] >= 99*asked[s] {
					recovered = time.Duration(s)*time.Second + time.Second
				}
				mu.Unlock()
			}
			asked[second]++
			cache, key := caches[r.IntN(c.processes)], r.IntN(c.keys)
			gets.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), c.wait)
				defer cancel()
				if _, err := cache.Get(ctx, key); err == nil {
					mu.Lock()
					defer mu.Unlock()
					answered[second]++
				}
			})
		}
		gets.Wait()
		time.Sleep(time.Hour) // the database finishes what was abandoned
	})
	return recovered, queries
}

// No origin of the grid stays collapsed behind an empty Redis. The origins are those of the policy's simulation; here all of cacheaside runs.
func TestNoOriginStaysCollapsed(t *testing.T) {
	for seed := range uint64(effort.Times(2, 24)) {
		c := draw(seed)
		if !effort.Long() {
			c.capacity, c.keys, c.count, c.load = 100, 200, 2, min(c.load, 6)
		}
		ideal := time.Duration(c.keys) * time.Second / time.Duration(c.capacity)
		recovered, queries := c.play(t)
		t.Logf("seed %d, %v: recovered after %v of %v, %d queries", seed, c, recovered, ideal, queries)
		if recovered == 0 {
			t.Errorf("seed %d, %v: never", seed, c)
		}
		if most := 3*ideal + 2*time.Second; recovered > most {
			t.Errorf("seed %d, %v: after %v, want %v at most", seed, c, recovered, most)
		}
	}
	if effort.Long() {
		c := cell{kind: "in order", capacity: 200, count: 4, processes: 2, load: 4, keys: 2000, wait: time.Second / 2, timeout: 2 * time.Second, limit: -1}
		if recovered, _ := c.play(t); recovered != 0 {
			t.Errorf("without a limit: after %v: the test shows nothing", recovered)
		}
	}
}
