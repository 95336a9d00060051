// Package lab runs the strategies against a stampede side by side: many callers in several processes read one hot key, whose load is
// slow, over many expiries.
//
//	r := lab.Run(ctx, lab.Setup{Processes: 8, Callers: 64, Load: 100 * time.Millisecond, TTL: time.Second, Expiries: 5, Connect: connect}, progress)
//	lab.Text(os.Stdout, r)
//	lab.SVG(file, r)
//
// A process has a client, a cache and a tier of local copies of its own. In truth all processes are in one program.
package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/demo/strategy"
)

// Setup describes a run.
type Setup struct {
	Strategies []strategy.Strategy
	Processes  int
	Callers    int           // in each process
	Pause      time.Duration // average pause of a caller between two Gets
	Load       time.Duration // how long a load takes
	TTL        time.Duration
	Expiries   int // each strategy runs for this many TTLs

	// Connect returns a client for one process. Run closes it.
	Connect func() *redis.Client
}

// Lasts returns how long the whole run takes.
func (s Setup) Lasts() time.Duration {
	return time.Duration(len(s.Strategies)*s.Expiries) * s.TTL
}

// Result holds the figures of each strategy, in order. If ctx ended early, some strategies are missing.
type Result struct {
	Setup   Setup
	Figures []Figures
	Partial bool // ctx ended before the run was complete
}

// Figures are the figures of one strategy.
type Figures struct {
	Strategy string
	Ran      time.Duration
	Reads    int
	Failed   int
	Loads    int
	PerTTL   float64 // loads per TTL
	Most     int     // loads that ran at the same time

	// How long a Get took, and the greatest age of a returned value, counted from the start of the value's load.
	P50, P99, Max, Oldest time.Duration

	loads []span
}

// span is the start and the end of a load.
type span struct{ from, to time.Duration }

// keepUp is how long mayfly waits for Redis here: Redis is not to blame for a machine that is busy with all these callers.
const keepUp = 10 * time.Second

// Run tries every strategy in turn until ctx ends. progress, if not nil, is called from time to time with the finished share of the run and the
// current strategy.
func Run(ctx context.Context, s Setup, progress func(done float64, strategy string)) (Result, error) {
	r := Result{Setup: s}
	for i, way := range s.Strategies {
		tell := func(share float64) {
			if progress != nil {
				progress((float64(i)+share)/float64(len(s.Strategies)), way.Name)
			}
		}
		tell(0)
		f, err := try(ctx, s, i, way, tell)
		if err != nil {
			return r, fmt.Errorf("lab: %s: %w", way.Name, err)
		}
		if f.Reads > 0 {
			r.Figures = append(r.Figures, f)
		}
		if ctx.Err() != nil {
			r.Partial = true
			return r, nil
		}
		tell(1)
	}
	return r, nil
}

// origin is the slow source. A value is the time at which its load began.
type origin struct {
	takes   time.Duration
	begun   time.Time
	running atomic.Int64

	mu    sync.Mutex // guards the fields below
	loads []span
	most  int
}

func (o *origin) load(ctx context.Context, _ int) (time.Duration, error) {
	n := int(o.running.Add(1))
	from := time.Since(o.begun)
	defer func() {
		o.running.Add(-1)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.most = max(o.most, n)
		o.loads = append(o.loads, span{from, time.Since(o.begun)})
	}()
	select {
	case <-time.After(o.takes):
		return from, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// restart forgets the loads so far, and returns the time.
func (o *origin) restart() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loads, o.most = nil, 0
	return time.Since(o.begun)
}

// try runs one strategy. Each strategy has its own key, which is deleted before and after.
func try(ctx context.Context, s Setup, i int, way strategy.Strategy, progress func(float64)) (Figures, error) {
	o := &origin{takes: s.Load}
	prefix := fmt.Sprintf("mayfly-lab:%d:", i)
	var caches []*strategy.Cache[time.Duration]
	outlive := context.WithoutCancel(ctx)
	for p := range s.Processes {
		rdb := s.Connect()
		defer rdb.Close()
		if p == 0 {
			if err := rdb.Unlink(ctx, prefix+"0").Err(); err != nil && ctx.Err() == nil {
				return Figures{}, err
			}
			defer rdb.Unlink(outlive, prefix+"0") // once all caches are closed
		}
		c, err := strategy.Open(ctx, way, strategy.Options{Redis: rdb, Name: "lab", Prefix: prefix, TTL: s.TTL, RedisTimeout: keepUp}, o.load)
		if err != nil {
			return Figures{}, err
		}
		defer c.Close(outlive)
		caches = append(caches, c)
	}
	o.begun = time.Now()
	for _, c := range caches { // the first loads: a hot key has been read before
		if _, err := c.Get(ctx, 0); err != nil && ctx.Err() == nil {
			return Figures{}, err
		}
	}
	started := o.restart()
	lasts := time.Duration(s.Expiries) * s.TTL
	visit, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var took, ages []time.Duration
	var failed int
	var mu sync.Mutex // guards the results
	var callers sync.WaitGroup
	for _, c := range caches {
		for range s.Callers {
			callers.Go(func() {
				t, a, f := ask(visit, outlive, s.Pause, o.begun, c)
				mu.Lock()
				defer mu.Unlock()
				took, ages, failed = append(took, t...), append(ages, a...), failed+f
			})
		}
	}
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for visit.Err() == nil {
		select {
		case <-ticks.C:
			progress(min(1, float64(time.Since(o.begun)-started)/float64(lasts)))
		case <-visit.Done():
		}
	}
	ran := time.Since(o.begun) - started
	callers.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	f := Figures{Strategy: way.Name, Ran: ran, Reads: len(took), Failed: failed, Loads: len(o.loads), Most: o.most}
	for _, l := range o.loads {
		f.loads = append(f.loads, span{l.from - started, l.to - started})
	}
	if len(took) > 0 {
		slices.Sort(took)
		f.PerTTL = float64(f.Loads) / (float64(ran) / float64(s.TTL))
		f.P50, f.P99, f.Max = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
		f.Oldest = slices.Max(ages)
	}
	return f, nil
}

// ask is one caller. It waits for a Get that has begun, so that slow ones count too.
func ask(visit, outlive context.Context, pause time.Duration, begun time.Time, c *strategy.Cache[time.Duration]) (took, ages []time.Duration, failed int) {
	rest := func(d time.Duration) bool {
		select {
		case <-time.After(d):
			return visit.Err() == nil
		case <-visit.Done():
			return false
		}
	}
	for again := rest(rand.N(pause + 1)); again; again = rest(rand.N(2*pause + 1)) {
		from := time.Now()
		loaded, err := c.Get(outlive, 0)
		if err != nil {
			failed++
			continue
		}
		took = append(took, time.Since(from))
		ages = append(ages, time.Since(begun)-loaded)
	}
	return took, ages, failed
}

// String describes the run in one sentence.
func (s Setup) String() string {
	return fmt.Sprintf("%d callers in %d processes ask for one key, each every %v on average; a load takes %v, its copy lives %v",
		s.Processes*s.Callers, s.Processes, s.Pause, s.Load, s.TTL)
}
