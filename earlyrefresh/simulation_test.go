package earlyrefresh_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

var seed = flag.Uint64("seed", 1, "seed of the simulations; 0 draws one")

// newRand is the same on each run unless -seed says otherwise: a test of chance must not fail by chance.
func newRand(t *testing.T) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("seed %d", s)
	return rand.New(rand.NewPCG(s, 0))
}

const minute = time.Minute // the TTL of every simulation

// outcome is what many TTLs of one key came to.
type outcome struct {
	loads float64 // loads started per TTL before the first result landed
	p99   float64
	lead  float64 // seconds between the first load's start and the end, 0 where it began after the end
}

// simulate lets Poisson readers at rate per second read one key whose load takes cost, through cycles TTLs of 60 s,
// and counts the loads that start before the first of them has finished. There is no lock: the policy alone decides.
// The readers of the first quiet part of the TTL are left out, as the policy cannot fire there.
func simulate(r *rand.Rand, p earlyrefresh.Policy, quiet time.Duration, rate float64, cost, told time.Duration, cycles int) outcome {
	var o outcome
	counts := map[int]int{}
	for range cycles {
		loads := 0
		landed := math.Inf(1) // when the first load's result is there, seconds since the value was stored
		for now := quiet.Seconds() + r.ExpFloat64()/rate; now < landed; now += r.ExpFloat64() / rate {
			remaining := minute - time.Duration(now*float64(time.Second))
			if remaining > 0 && !p.Due(minute, remaining, told, r.Float64()) {
				continue
			}
			if loads++; loads == 1 {
				landed = now + cost.Seconds()
				o.lead += max(remaining, 0).Seconds()
			}
		}
		o.loads += float64(loads)
		counts[loads]++
	}
	o.loads /= float64(cycles)
	o.lead /= float64(cycles)
	for n, seen := 0, 0; seen < cycles*99/100; {
		n++
		seen += counts[n]
		o.p99 = float64(n)
	}
	return o
}

// The rows of the project's own earlier study of the rules, which gave XFetch the load time itself; dividing by
// Margin takes ours out. Lead and loads must agree within the two studies' error. Rows in which half the TTL
// clamps the window are not in it: there the rule differs on purpose.
func TestSimulationAgreesWithTheStudy(t *testing.T) {
	effort.Alone(t)
	r := newRand(t)
	xfetch := func(beta float64) earlyrefresh.Policy { return earlyrefresh.XFetch(beta) }
	for _, c := range []struct {
		name        string
		policy      earlyrefresh.Policy
		quiet       time.Duration
		rate        float64
		cost        time.Duration
		lead, loads float64
	}{
		{"none", earlyrefresh.Never, minute, 100, 100 * time.Millisecond, 0, 11.0},
		{"none", earlyrefresh.Never, minute, 1000, 100 * time.Millisecond, 0, 101},
		{"none", earlyrefresh.Never, minute, 10, 2 * time.Second, 0, 20.9},
		{"XFetch(1)", xfetch(1), minute / 2, 10, 100 * time.Millisecond, 0.08, 1.73},
		{"XFetch(1)", xfetch(1), minute / 2, 100, 100 * time.Millisecond, 0.29, 2.73},
		{"XFetch(1)", xfetch(1), minute / 2, 1000, 10 * time.Millisecond, 0.03, 2.66},
		{"XFetch(1)", xfetch(1), minute / 2, 1000, 100 * time.Millisecond, 0.52, 2.75},
		{"XFetch(1)", xfetch(1), minute / 2, 1000, 500 * time.Millisecond, 3.4, 2.71},
		{"XFetch(1)", xfetch(1), minute / 2, 1000, 2 * time.Second, 16.4, 2.64},
		{"XFetch(1)", xfetch(1), minute / 2, 10, 2 * time.Second, 7.2, 2.75},
		{"XFetch(2)", xfetch(2), minute / 2, 10, 100 * time.Millisecond, 0.26, 1.50},
		{"XFetch(2)", xfetch(2), minute / 2, 100, 100 * time.Millisecond, 0.72, 1.64},
		{"XFetch(2)", xfetch(2), minute / 2, 1000, 100 * time.Millisecond, 1.17, 1.64},
		{"XFetch(2)", xfetch(2), minute / 2, 1000, 500 * time.Millisecond, 7.5, 1.67},
		{"Linear(0.1)", earlyrefresh.Linear(0.1), 54 * time.Second, 10, 100 * time.Millisecond, 5.0, 1.18},
		{"Linear(0.1)", earlyrefresh.Linear(0.1), 54 * time.Second, 100, 100 * time.Millisecond, 5.7, 1.60},
		{"Linear(0.1)", earlyrefresh.Linear(0.1), 54 * time.Second, 1000, 100 * time.Millisecond, 5.9, 3.42},
		{"Linear(0.1)", earlyrefresh.Linear(0.1), 54 * time.Second, 1000, 500 * time.Millisecond, 5.9, 29.8},
		{"Linear(0.1)", earlyrefresh.Linear(0.1), 54 * time.Second, 10, 2 * time.Second, 5.0, 7.65},
		{"Linear(1)", earlyrefresh.Linear(1), 0, 1, 10 * time.Millisecond, 50.5, 1.00},
		{"Linear(1)", earlyrefresh.Linear(1), 0, 10, 100 * time.Millisecond, 56.9, 1.05},
		{"Linear(1)", earlyrefresh.Linear(1), 0, 1000, 100 * time.Millisecond, 59.7, 1.59},
		{"Linear(1)", earlyrefresh.Linear(1), 0, 1000, 2 * time.Second, 59.7, 44.6},
	} {
		told := c.cost
		if c.name[0] == 'X' {
			told = time.Duration(float64(c.cost) / 1.5)
		}
		cycles := min(1000, max(effort.Times(30, 100), effort.Times(1e6, 6e6)/int(60*c.rate)))
		got := simulate(r, c.policy, c.quiet, c.rate, c.cost, told, cycles)
		t.Logf("%-11s rate %5.0f/s load %5v: lead %5.2f s (study %5.2f), loads %6.2f (study %6.2f), p99 %3.0f",
			c.name, c.rate, c.cost, got.lead, c.lead, got.loads, c.loads, got.p99)
		// Five standard errors: loads are about geometric (deviation near the mean), leads about Gumbel.
		if allowed := 5*c.loads/math.Sqrt(float64(cycles)) + 0.02; math.Abs(got.loads-c.loads) > allowed {
			t.Errorf("%s at %v/s, load %v: %.2f loads per TTL, the study has %.2f, allowed +-%.2f",
				c.name, c.rate, c.cost, got.loads, c.loads, allowed)
		}
		if allowed := 0.03 + 0.15*c.lead; math.Abs(got.lead-c.lead) > allowed {
			t.Errorf("%s at %v/s, load %v: lead %.2f s, the study has %.2f, allowed +-%.2f",
				c.name, c.rate, c.cost, got.lead, c.lead, allowed)
		}
	}
}

// XFetch as it ships: with Margin, the loads per renewal fall from e to e^(1/1.5), whatever rate and load time.
func TestMarginLowersTheLoadsPerRenewal(t *testing.T) {
	effort.Alone(t)
	r := newRand(t)
	want := math.Exp(1 / 1.5)
	for _, rate := range []float64{100, 400} {
		for _, cost := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond} {
			got := simulate(r, earlyrefresh.XFetch(1), minute/2, rate, cost, cost, effort.Times(150, 400))
			t.Logf("rate %v/s load %v: lead %.2f s, loads %.2f, p99 %v", rate, cost, got.lead, got.loads, got.p99)
			if math.Abs(got.loads-want) > 0.5 {
				t.Errorf("rate %v/s load %v: %.2f loads per renewal, want %.2f", rate, cost, got.loads, want)
			}
		}
	}
}

// Half the TTL bounds the window: a load as slow as the TTL must not renew without end.
func TestASlowLoadIsNotRenewedBeforeHalfTheTTL(t *testing.T) {
	got := simulate(newRand(t), earlyrefresh.XFetch(1), 0, 1000, time.Second, time.Minute, 100)
	if got.lead > 30 {
		t.Errorf("lead %.1f s of a 60 s TTL, want at most 30", got.lead)
	}
}
