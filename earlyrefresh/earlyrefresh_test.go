package earlyrefresh_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/earlyrefresh"
)

func TestDue(t *testing.T) {
	const ttl = time.Minute
	for _, c := range []struct {
		name            string
		policy          earlyrefresh.Policy
		remaining, cost time.Duration
		draw            float64
		want            bool
	}{
		{"XFetch without a timed load never fires", earlyrefresh.XFetch(1), time.Millisecond, 0, 0.9999999, false},
		{"XFetch not before half the TTL is over", earlyrefresh.XFetch(1), 31 * time.Second, time.Hour, 0.9999999, false},
		{"XFetch after half the TTL, a slow load", earlyrefresh.XFetch(1), 29 * time.Second, time.Hour, 0.5, true},
		{"XFetch far from the end for a cheap load", earlyrefresh.XFetch(1), 10 * time.Second, time.Millisecond, 0.99, false},
		{"XFetch at the very end", earlyrefresh.XFetch(1), 0, time.Millisecond, 0, true},
		{"XFetch takes Margin into account", earlyrefresh.XFetch(1), 1400 * time.Millisecond, time.Second, 1 - 1/math.E, true},
		{"XFetch and no more than Margin", earlyrefresh.XFetch(1), 1600 * time.Millisecond, time.Second, 1 - 1/math.E, false},
		{"XFetch: beta moves the same draw earlier", earlyrefresh.XFetch(2), 2900 * time.Millisecond, time.Second, 1 - 1/math.E, true},
		{"XFetch: draw 0 is finite", earlyrefresh.XFetch(1), time.Second, time.Second, 0, false},
		{"Linear is the guide's rule", earlyrefresh.Linear(1), 29 * time.Second, 0, 0.5, true},
		{"Linear on the other side", earlyrefresh.Linear(1), 31 * time.Second, 0, 0.5, false},
		{"Linear does not ask what a load costs", earlyrefresh.Linear(0.1), 7 * time.Second, time.Hour, 0.999, false},
		{"Window inside", earlyrefresh.Window(0.2), 12 * time.Second, 0, 0, true},
		{"Window outside", earlyrefresh.Window(0.2), 12*time.Second + 1, 0, 0.99, false},
		{"Never", earlyrefresh.Never, 0, time.Hour, 0.999, false},
	} {
		if got := c.policy.Due(ttl, c.remaining, c.cost, c.draw); got != c.want {
			t.Errorf("%s: Due(%v, %v, %v, %v) = %v", c.name, ttl, c.remaining, c.cost, c.draw, got)
		}
	}
}

// validate asks a policy as the constructors of caches do.
func validate(p earlyrefresh.Policy) error {
	if v, ok := p.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

func TestValidateNamesParameterAndValue(t *testing.T) {
	for _, c := range []struct {
		policy earlyrefresh.Policy
		want   string
	}{
		{earlyrefresh.XFetch(0), "earlyrefresh.XFetch: beta must be positive and finite, got 0"},
		{earlyrefresh.XFetch(-1), "earlyrefresh.XFetch: beta must be positive and finite, got -1"},
		{earlyrefresh.XFetch(math.NaN()), "earlyrefresh.XFetch: beta must be positive and finite, got NaN"},
		{earlyrefresh.XFetch(math.Inf(1)), "earlyrefresh.XFetch: beta must be positive and finite, got +Inf"},
		{earlyrefresh.Linear(0), "earlyrefresh.Linear: beta must be positive and finite, got 0"},
		{earlyrefresh.Linear(math.NaN()), "earlyrefresh.Linear: beta must be positive and finite, got NaN"},
		{earlyrefresh.Window(0), "earlyrefresh.Window: share must be in (0,1), got 0"},
		{earlyrefresh.Window(1), "earlyrefresh.Window: share must be in (0,1), got 1"},
		{earlyrefresh.Window(math.NaN()), "earlyrefresh.Window: share must be in (0,1), got NaN"},
	} {
		if err := validate(c.policy); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%#v: got error %v, want %q", c.policy, err, c.want)
		}
	}
	for _, p := range []earlyrefresh.Policy{earlyrefresh.XFetch(1), earlyrefresh.Linear(0.1), earlyrefresh.Window(0.2), earlyrefresh.Never} {
		if err := validate(p); err != nil {
			t.Errorf("%#v: %v", p, err)
		}
	}
}

func TestDueAllocatesNothing(t *testing.T) {
	p := earlyrefresh.XFetch(1)
	if n := testing.AllocsPerRun(1000, func() { p.Due(time.Minute, time.Second, time.Second, 0.5) }); n != 0 {
		t.Errorf("Due allocates %v times", n)
	}
}

func BenchmarkDue(b *testing.B) {
	p := earlyrefresh.XFetch(1)
	b.Run("far from the end", func(b *testing.B) {
		for b.Loop() {
			p.Due(time.Minute, 50*time.Second, time.Second, 0.5)
		}
	})
	b.Run("near the end", func(b *testing.B) {
		for b.Loop() {
			p.Due(time.Minute, 5*time.Second, time.Second, 0.5)
		}
	})
}
