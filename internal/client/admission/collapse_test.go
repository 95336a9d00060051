package admission_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/admission"
)

// database answers 200 queries a second, in order, also those that nobody waits for any more.
type database struct {
	workers chan struct{}
}

const (
	queryTime = 20 * time.Millisecond
	loadTime  = 2 * time.Second
	getTime   = 500 * time.Millisecond
)

// query reports how a load ended.
func (d *database) query() admission.Outcome {
	done := make(chan struct{})
	go func() {
		d.workers <- struct{}{} // waiting senders are served in order
		time.Sleep(queryTime)
		<-d.workers
		close(done)
	}()
	late := time.NewTimer(loadTime)
	defer late.Stop()
	select {
	case <-done:
		return admission.OK
	case <-late.C:
		return admission.TimedOut
	}
}

// cache is the smallest cache with the problem: one load per key at a time, which continues after its callers have left.
type cache struct {
	limiter *admission.Limiter
	origin  *database

	mu            sync.Mutex // guards the rest
	loads         map[int]*load
	have          map[int]bool
	queries, vain int
}

type load struct {
	callers   int
	entered   bool
	abandoned chan struct{}
	done      chan struct{}
}

// get reports whether key could be had in time.
func (c *cache) get(key int) bool {
	c.mu.Lock()
	if c.have[key] {
		c.mu.Unlock()
		return true
	}
	l := c.loads[key]
	if l == nil {
		l = &load{abandoned: make(chan struct{}), done: make(chan struct{})}
		c.loads[key] = l
		go c.load(key, l, time.Now().Add(getTime))
	}
	l.callers++
	c.mu.Unlock()
	late := time.NewTimer(getTime)
	defer late.Stop()
	select {
	case <-l.done:
	case <-late.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.callers--; l.callers == 0 && !l.entered && c.loads[key] == l {
		delete(c.loads, key)
		close(l.abandoned)
	}
	return c.have[key]
}

func (c *cache) load(key int, l *load, until time.Time) {
	defer close(l.done)
	p, err := c.limiter.Enter(context.Background(), admission.Wish{Until: until, Abandoned: l.abandoned})
	defer p.Drop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		return
	}
	l.entered = true
	if c.loads[key] != l { // left just now
		p.Done(admission.NoSample, time.Now())
		return
	}
	c.mu.Unlock()
	how := c.origin.query()
	c.mu.Lock()
	p.Done(how, time.Now())
	c.queries++
	if how == admission.TimedOut {
		c.vain++
	}
	delete(c.loads, key)
	c.have[key] = how == admission.OK
}

// An empty cache of 2000 keys and 800 gets a second, in front of a database that can do 200: with a limiter it is full after ten
// seconds, and without it never.
func TestACollapsedDatabaseRecovers(t *testing.T) {
	for name, c := range map[string]struct {
		limit             int
		least, most, vain float64
	}{
		"the limit is found": {0, .99, 1, .05},
		"without a limit":    {-1, 0, .6, 1e9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const keys = 2000
				d := &database{workers: make(chan struct{}, 4)}
				store := &cache{limiter: newLimiter(t, admission.Options{Limit: c.limit, Timeout: loadTime}), origin: d,
					loads: make(map[int]*load), have: make(map[int]bool)}
				r := rand.New(rand.NewPCG(1, 1))
				var gets sync.WaitGroup
				answered, asked := 0, 0
				for begun := time.Now(); time.Since(begun) < 14*time.Second; time.Sleep(time.Second / 800) {
					key, counts := r.IntN(keys), time.Since(begun) > 12*time.Second
					gets.Go(func() {
						had := store.get(key)
						if counts {
							store.mu.Lock()
							defer store.mu.Unlock()
							asked++
							if had {
								answered++
							}
						}
					})
				}
				gets.Wait()
				store.mu.Lock() // loads that nobody waits for go on
				defer store.mu.Unlock()
				share, vain := float64(answered)/float64(asked), float64(store.vain)/keys
				t.Logf("after 12 s %.1f %% are answered; %d queries, %d in vain; %+v", 100*share, store.queries, store.vain, store.limiter.Stats())
				if share < c.least || share > c.most || vain > c.vain {
					t.Errorf("%.1f %% are answered, %d queries in vain", 100*share, store.vain)
				}
				store.limiter.Close()
				store.mu.Unlock()
				defer store.mu.Lock()
				time.Sleep(time.Hour) // the database finishes what was abandoned
			})
		})
	}
}
