package admission

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

var models = []string{"workers", "sharing", "connections", "lognormal", "changing", "thrashing", "cancelling"}

// overload is one case: an empty Redis in front of one origin.
type overload struct {
	model    string
	capacity float64 // queries a second
	cost     time.Duration
	procs    int
	load     float64 // gets a second, as a multiple of the capacity
	ideal    float64 // seconds in which the capacity loads all keys
	wait     time.Duration
	timeout  time.Duration
	seed     uint64
}

func (o overload) String() string {
	return fmt.Sprintf("%s %.0f/s cost %v, %d processes, %.1fx, %.0f s of keys, gets wait %v, loads %v, seed %d", o.model, o.capacity, o.cost, o.procs, o.load, o.ideal, o.wait, o.timeout, o.seed)
}

func draw(model string, seed uint64) overload {
	r := rand.New(rand.NewPCG(seed, 1))
	one := func(d ...time.Duration) time.Duration { return d[r.IntN(len(d))] }
	o := overload{
		model:    model,
		seed:     seed,
		capacity: 50 * math.Pow(100, r.Float64()),
		cost:     one(5*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond),
		procs:    1 << r.IntN(4),
		load:     2 * math.Pow(10, r.Float64()),
		ideal:    []float64{5, 10, 20}[r.IntN(3)],
		timeout:  one(time.Second, 2*time.Second, 5*time.Second, 10*time.Second),
	}
	if n, _ := strconv.Atoi(os.Getenv("PROCS")); n > 0 {
		o.procs = n
	}
	o.wait = min(one(500*time.Millisecond, time.Second, 2*time.Second), o.timeout)
	return o
}

func (o overload) world(admit func() admitter) *world {
	count := max(1, int(math.Round(o.capacity*o.cost.Seconds())))
	mean := time.Duration(float64(count) / o.capacity * 1e9) // makes the capacity exact
	w := world{
		rand:    rand.New(rand.NewPCG(o.seed, 2)),
		keys:    max(int(o.ideal*o.capacity), 10),
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

type result struct {
	overload
	ratio float64 // Inf: never
	waste float64
	w     *world
}

func (o overload) play(admit func(o overload) admitter) result {
	w := o.world(func() admitter { return admit(o) })
	ideal := max(1, o.ideal)
	limit := time.Duration((5*ideal + 30) * float64(time.Second))
	w.run(limit+3*time.Second, func() bool { return w.recovered() != never })
	res := result{overload: o, ratio: math.Inf(1), w: w}
	if at := w.recovered(); at <= limit {
		res.ratio = at.Seconds() / ideal
	}
	res.waste = 1 - float64(w.useful)/float64(max(1, w.queries))
	return res
}

type summary struct {
	p50, p90, max float64
	never         int
	waste         float64
}

func summarize(rs []result) summary {
	var ratios, waste []float64
	var s summary
	for _, r := range rs {
		waste = append(waste, r.waste)
		ratios = append(ratios, r.ratio)
		if math.IsInf(r.ratio, 1) {
			s.never++
		} else {
			s.max = max(s.max, r.ratio)
		}
	}
	slices.Sort(ratios)
	slices.Sort(waste)
	s.p50, s.p90 = ratios[len(ratios)/2], ratios[len(ratios)*9/10]
	s.waste = waste[len(waste)*9/10]
	return s
}

func TestX(t *testing.T) {
	var n uint64 = 10
	fmt.Sscan(os.Getenv("N"), &n)
	policies := map[string]func(o overload) admitter{
		"nothing": func(overload) admitter { return semaphore(1 << 30) },
		"sem100":  func(overload) admitter { return semaphore(100) },
		"sketch":  func(o overload) admitter { return NewPolicy(o.timeout) },
	}
	for _, name := range []string{"sketch"} {
		begun := time.Now()
		var all []result
		for i, m := range models {
			var rs []result
			for s := range n {
				rs = append(rs, draw(m, uint64(i)*1000+s+seedBase()).play(policies[name]))
			}
			all = append(all, rs...)
			sm := summarize(rs)
			t.Logf("  %-10s %-12s p50 %.2f p90 %.2f max %.2f never %d waste %.2f", name, m, sm.p50, sm.p90, sm.max, sm.never, sm.waste)
			if os.Getenv("V") != "" {
				for _, r := range rs {
					if r.ratio > 1.5 {
						t.Logf("      %.2f %v", r.ratio, r.overload)
					}
				}
			}
		}
		sm := summarize(all)
		t.Logf("%-10s ALL p50 %.2f p90 %.2f max %.2f never %d of %d waste %.2f in %v", name, sm.p50, sm.p90, sm.max, sm.never, len(all), sm.waste, time.Since(begun))
	}
}

func seedBase() uint64 {
	n, _ := strconv.Atoi(os.Getenv("SEED"))
	return uint64(n)
}
