package admission

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// uniques is a world in which no key is asked for twice: as many queries as gets, before eight workers.
func uniques(seed uint64, gets float64, wait time.Duration, cost costs) world {
	return world{rand: rand.New(rand.NewPCG(seed, 3)), keys: 1 << 40, unique: true, gets: gets, wait: wait, timeout: 2 * time.Second,
		cost: cost, origin: newWorkers(8)}
}

func without() admitter { return semaphore(1 << 30) }

func policy() admitter { return adaptive(2 * time.Second) }

// An origin that is not overloaded does not feel the policy: the same arrivals and costs, with and without.
func TestNobodyWaitsWithoutNeed(t *testing.T) {
	effort.Alone(t)
	misses := effort.Times(20_000, 340_000)
	for name, cost := range map[string]costs{
		"exponential": exponential(20 * time.Millisecond),
		"bimodal":     bimodal(10*time.Millisecond, 210*time.Millisecond, .05),
	} {
		for _, used := range []float64{.3, .5, .7} {
			play := func(admit func() admitter) *world {
				w := newWorld(uniques(1, 400*used, 2*time.Second, cost), 2, admit)
				w.run(time.Duration(float64(misses)/w.gets*float64(time.Second)), nil)
				return w
			}
			with, plain := play(policy), play(without)
			mean := func(w *world) float64 { return (w.queued + w.loading).Seconds() / float64(w.useful) }
			share := with.queued.Seconds() / with.loading.Seconds()
			t.Logf("%s costs, %.0f %% used, %d loads: queued %.3f %% of a load, %.3f ms each instead of %.3f", name, 100*used, with.useful,
				100*share, 1000*mean(with), 1000*mean(plain))
			if with.refused > 0 || with.queries-with.useful > plain.queries-plain.useful {
				t.Errorf("%s costs, %.0f %% used: %d refused, %d in vain", name, 100*used, with.refused, with.queries-with.useful)
			}
			// A queue here in place of one in the origin costs nobody anything.
			if mean(with) > 1.005*mean(plain) {
				t.Errorf("%s costs, %.0f %% used: %.3f ms each instead of %.3f", name, 100*used, 1000*mean(with), 1000*mean(plain))
			}
		}
	}
}

// In front of an origin that can do anything, little is lost by a limit that has to grow.
func TestAHugeOriginIsFoundSoon(t *testing.T) {
	effort.Alone(t)
	for _, procs := range []int{1, 8} {
		filled := func(admit func() admitter) time.Duration { // until 99 % of the keys are there
			w := newWorld(world{rand: rand.New(rand.NewPCG(1, 4)), keys: 20_000, gets: 100_000, wait: 500 * time.Millisecond,
				timeout: 2 * time.Second, cost: exponential(20 * time.Millisecond), origin: newWorkers(2000)}, procs, admit)
			for w.useful < w.keys*99/100 && w.now < 5*time.Second {
				w.run(w.now+5*time.Millisecond, nil)
			}
			return w.now
		}
		with, plain := filled(policy), filled(without)
		t.Logf("%d processes: full after %v, without a limit after %v", procs, with, plain)
		if with > plain*11/10 {
			t.Errorf("%d processes: full after %v, without a limit after %v", procs, with, plain)
		}
	}
}

// More keys than the origin can load, none asked for twice: what it can do, it does for callers who are still there.
func TestAnOverloadedOriginWorksForThoseWhoWait(t *testing.T) {
	effort.Alone(t)
	for _, wait := range []time.Duration{200 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second} {
		worst := 1.
		for seed := range uint64(effort.Times(3, 60)) {
			load := []float64{1.2, 2, 10}[seed%3]
			w := newWorld(uniques(seed, 400*load, wait, exponential(20*time.Millisecond)), 2, policy)
			w.run(20*time.Second, nil)
			got := load * w.share(20, 60) // of what is possible, after five seconds
			worst = min(worst, got)
		}
		t.Logf("gets wait %v: at least %.2f of what is possible", wait, worst)
		if worst < .9 {
			t.Errorf("gets wait %v: %.2f of what is possible", wait, worst)
		}
	}
}

// An origin that becomes slower, but not by our doing, is given more loads at a time, not fewer.
func TestASlowerOriginIsUnderstood(t *testing.T) {
	effort.Alone(t)
	for _, c := range []struct {
		from, to time.Duration
		workers  int
		gets     float64
		procs    int
	}{
		{5 * time.Millisecond, 200 * time.Millisecond, 50, 75, 1},
		{5 * time.Millisecond, 200 * time.Millisecond, 50, 150, 4},
		{2 * time.Millisecond, 50 * time.Millisecond, 50, 500, 2},
		{2 * time.Millisecond, 30 * time.Millisecond, 100, 2000, 1},
	} {
		w := uniques(3, c.gets, time.Second, nil)
		w.origin = newWorkers(c.workers)
		played := newWorld(w, c.procs, policy)
		played.cost = func(r *rand.Rand) time.Duration {
			if played.now < 10*time.Second {
				return exponential(c.from)(r)
			}
			return exponential(c.to)(r)
		}
		played.run(40*time.Second, nil)
		t.Logf("%v, then %v: %.3f answered while it is learned, %.3f later", c.from, c.to, played.share(40, 80), played.share(80, 150))
		if played.share(80, 150) < .99 {
			t.Errorf("%v, then %v: %.3f are answered", c.from, c.to, played.share(80, 150))
		}
	}
}

// faulty fails a share of its queries, whatever it is asked.
type faulty struct {
	*workers
	rand  *rand.Rand
	share func(now time.Duration) float64
}

func (o faulty) begin(now time.Duration, q *query) bool {
	return o.rand.Float64() >= o.share(now) && o.workers.begin(now, q)
}

// Errors that are not our doing are tolerated: half of what is asked for may fail, and the rest is still loaded.
func TestErrorsOfOthersDoNotCloseTheDoor(t *testing.T) {
	for name, c := range map[string]struct {
		share func(now time.Duration) float64
		want  float64
	}{
		"always three of ten": {func(time.Duration) float64 { return .3 }, .68},
		"all for ten seconds": {func(now time.Duration) float64 {
			if now > 3*time.Second && now < 13*time.Second {
				return 1
			}
			return 0
		}, .99},
	} {
		w := uniques(4, 1000, time.Second, exponential(20*time.Millisecond))
		w.origin = faulty{newWorkers(40), rand.New(rand.NewPCG(5, 5)), c.share}
		played := newWorld(w, 2, policy)
		played.run(30*time.Second, nil)
		if got := played.share(60, 110); got < c.want {
			t.Errorf("%s: %.3f are answered, want %.2f", name, got, c.want)
		}
	}
}
