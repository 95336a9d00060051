package admission

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

var figures = flag.Bool("figures", false, "simulate the whole grid, also without a limit and with a fixed one, and print the table of docs/decisions/0010-admission.md")

var models = []string{"workers", "sharing", "connections", "lognormal", "changing", "thrashing", "cancelling"}

// overload is one case: an empty Redis in front of one origin.
type overload struct {
	model    string
	capacity float64 // queries a second
	cost     time.Duration
	procs    int
	load     float64       // gets a second, as a multiple of the capacity
	ideal    float64       // seconds in which the capacity loads all keys
	wait     time.Duration // of a get
	timeout  time.Duration // of a load
	seed     uint64
}

func (o overload) String() string {
	return fmt.Sprintf("%s %.0f/s, each %v, %d processes, %.1fx, %.0f s of keys, gets wait %v, loads %v, seed %d",
		o.model, o.capacity, o.cost, o.procs, o.load, o.ideal, o.wait, o.timeout, o.seed)
}

func drawCase(model string, most float64, procs int, seed uint64) overload {
	r := rand.New(rand.NewPCG(seed, 1))
	one := func(d ...time.Duration) time.Duration { return d[r.IntN(len(d))] }
	o := overload{
		model:    model,
		seed:     seed,
		capacity: 50 * math.Pow(most/50, r.Float64()),
		cost:     one(5*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond),
		procs:    1 << r.IntN(4),
		load:     2 * math.Pow(10, r.Float64()),
		ideal:    []float64{5, 10, 20}[r.IntN(3)],
		timeout:  one(time.Second, 2*time.Second, 5*time.Second, 10*time.Second),
	}
	if procs > 0 {
		o.procs = procs
	}
	o.wait = min(one(500*time.Millisecond, time.Second, 2*time.Second), o.timeout)
	return o
}

// world makes the case. The capacity of an origin that changes is the mean.
func (o overload) world(admit func() admitter) *world {
	count := max(1, int(math.Round(o.capacity*o.cost.Seconds())))
	mean := time.Duration(float64(count) / o.capacity * 1e9) // makes the capacity exact
	w := world{
		rand:    rand.New(rand.NewPCG(o.seed, 2)),
		keys:    int(o.ideal * o.capacity),
		gets:    o.load * o.capacity,
		wait:    o.wait,
		timeout: o.timeout,
		cost:    exponential(mean),
	}
	queue := newWorkers(count)
	w.origin = queue
	switch o.model {
	case "sharing":
		w.origin = newSharing(count, 0)
	case "thrashing":
		w.origin = newSharing(count, 4*count+16)
	case "connections":
		queue.conns = 2*count + 10
	case "lognormal":
		w.cost = lognormal(mean, 1.2)
	case "changing":
		queue.speed = func(now time.Duration) float64 {
			if int(now/(3*time.Second))%2 == 0 {
				return 1.6
			}
			return .4
		}
	case "cancelling":
		queue.cancels = true
	}
	return newWorld(w, o.procs, admit)
}

// played is what came of a case: the time until 99 % of gets are answered, as a multiple of the ideal, and the share of queries in vain.
type played struct {
	overload
	ratio, waste float64 // ratio is infinite if the case stays collapsed
}

func (o overload) play(admit func(timeout time.Duration) admitter) played {
	w := o.world(func() admitter { return admit(o.timeout) })
	ideal := max(1, o.ideal)
	limit := time.Duration((5*ideal + 30) * float64(time.Second))
	w.run(limit+3*time.Second, func() bool { return w.recovered() != never })
	p := played{overload: o, ratio: math.Inf(1), waste: 1 - float64(w.useful)/float64(max(1, w.queries))}
	if at := w.recovered(); at <= limit {
		p.ratio = at.Seconds() / ideal
	}
	return p
}

type summary struct {
	p50, p90, worst float64 // worst of those that recover
	never           int
	waste           float64 // p90
}

func (s summary) String() string {
	return fmt.Sprintf("| %.2f | %.2f | %.2f | %d | %.2f |", s.p50, s.p90, s.worst, s.never, s.waste)
}

func summarize(all []played) (s summary) {
	var ratios, waste []float64
	for _, p := range all {
		ratios, waste = append(ratios, p.ratio), append(waste, p.waste)
		if math.IsInf(p.ratio, 1) {
			s.never++
		} else {
			s.worst = max(s.worst, p.ratio)
		}
	}
	slices.Sort(ratios)
	slices.Sort(waste)
	s.p50, s.p90, s.waste = ratios[len(ratios)/2], ratios[len(ratios)*9/10], waste[len(waste)*9/10]
	return s
}

func adaptive(timeout time.Duration) admitter { return NewPolicy(timeout) }

// No origin stays collapsed behind the policy, and most recover in the time that loading takes anyway.
func TestEveryOriginRecovers(t *testing.T) {
	effort.Alone(t)
	n, most := effort.Times(3, 60), effort.Times(400, 5000)
	if *figures {
		n, most = 60, 5000
	}
	grid := func(name string, procs int, admit func(time.Duration) admitter) summary {
		var all []played
		for i, model := range models {
			var some []played
			for s := range n {
				p := drawCase(model, float64(most), procs, uint64(i*1000+s)).play(admit)
				some = append(some, p)
				if math.IsInf(p.ratio, 1) && procs == 0 && name == "policy" {
					t.Errorf("never: %v", p.overload)
				}
			}
			t.Logf("| %s, %s %v", name, model, summarize(some))
			all = append(all, some...)
		}
		t.Logf("| %s, all %d %v", name, len(all), summarize(all))
		return summarize(all)
	}
	if s := grid("policy", 0, adaptive); s.p90 > 1.2 || s.worst > 3 {
		t.Errorf("p90 %.2f, worst %.2f", s.p90, s.worst)
	}
	if *figures {
		grid("policy, 16 processes", 16, adaptive)
		grid("policy, 32 processes", 32, adaptive)
		grid("semaphore of 100", 0, func(time.Duration) admitter { return semaphore(100) })
		grid("nothing", 0, func(time.Duration) admitter { return semaphore(1 << 30) })
	}
}

// The case that started it: 200 queries a second, 2000 hot keys, 800 gets a second that wait half a second each.
func TestAnEmptyCacheFills(t *testing.T) {
	for seed := range uint64(effort.Times(3, 50)) {
		o := overload{"workers", 200, 20 * time.Millisecond, 1 << (seed % 4), 4, 10, 500 * time.Millisecond, 2 * time.Second, seed}
		w := o.world(func() admitter { return adaptive(o.timeout) })
		w.run(12*time.Second+2*time.Second+o.wait, nil)
		if extra := w.queries - w.useful; w.recovered() > 12*time.Second || extra > w.keys/20 {
			t.Errorf("%v: after %v, %d queries in vain", o, w.recovered(), extra)
		}
	}
	o := overload{"workers", 200, 20 * time.Millisecond, 1, 4, 10, 500 * time.Millisecond, 2 * time.Second, 1}
	if p := o.play(func(time.Duration) admitter { return semaphore(1 << 30) }); !math.IsInf(p.ratio, 1) {
		t.Errorf("without a limit it recovers after %.1f ideals: the case shows nothing", p.ratio)
	}
}
