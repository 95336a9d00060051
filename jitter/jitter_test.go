package jitter_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/jitter"
)

// The promise in one picture: 10,000 keys written in the same second with a TTL of one hour.
func TestKeysWrittenTogetherDoNotExpireTogether(t *testing.T) {
	worst := func(s jitter.Spread) int {
		const keys = 10_000
		seconds := map[int64]int{}
		most := 0
		for range keys {
			second := int64(s.TTL(time.Hour) / time.Second)
			seconds[second]++
			most = max(most, seconds[second])
		}
		return most
	}
	if got := worst(jitter.Spread{}); got != 10_000 {
		t.Errorf("without jitter one second must see all 10000 expiries, saw %d", got)
	}
	got := worst(jitter.Default.Seeded(1))
	if got > 40 {
		t.Errorf("one second sees %d of 10000 expiries, want at most 40 (0.4 %%)", got)
	}
	t.Logf("worst second: %d of 10000 expiries with jitter, 10000 without", got)
}

func TestBoundsMeanAndSpread(t *testing.T) {
	for _, f := range []float64{0.01, 0.10, 0.5, 0.99} {
		s := jitter.Spread{Fraction: f}.Seeded(42)
		const n = 200_000
		var sum, squares float64
		for range n {
			got := s.TTL(time.Hour)
			if lo, hi := float64(time.Hour)*(1-f), float64(time.Hour)*(1+f); float64(got) < lo-1e6 || float64(got) > hi {
				t.Fatalf("Fraction(%v): TTL(1h) = %v, outside +-%v", f, got, f)
			}
			x := float64(got)/float64(time.Hour) - 1
			sum += x
			squares += x * x
		}
		// Uniform on [-f,f]: mean 0, standard deviation f/sqrt(3). Six standard errors of the mean are allowed.
		if mean, allowed := sum/n, 6*f/math.Sqrt(3*n); math.Abs(mean) > allowed {
			t.Errorf("Fraction(%v): mean moved by %v, want 0 +- %v", f, mean, allowed)
		}
		if dev, want := math.Sqrt(squares/n), f/math.Sqrt(3); math.Abs(dev/want-1) > 0.01 {
			t.Errorf("Fraction(%v): standard deviation %v, want %v", f, dev, want)
		}
	}
}

func TestAnyTTLAnyDraw(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200_000 {
		ttl := time.Duration(r.Uint64() >> r.UintN(63)) // every magnitude, the negative ones too
		s := jitter.Spread{Fraction: r.Float64() * 0.999}
		if r.IntN(2) == 0 {
			s.Floor = time.Duration(r.Uint64() >> (2 + r.UintN(61)))
			s.Ceiling = s.Floor + time.Millisecond
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
		got := s.At(ttl, r.Float64())
		if got < time.Millisecond || got%time.Millisecond != 0 {
			t.Fatalf("At(%d) with %+v = %d: not whole milliseconds of at least one", ttl, s, got)
		}
		if s.Ceiling > 0 && (got > s.Ceiling || got < (s.Floor-time.Millisecond)) {
			t.Fatalf("At(%d) with %+v = %d: outside its bounds", ttl, s, got)
		}
	}
}

func TestEdges(t *testing.T) {
	for _, c := range []struct {
		name   string
		spread jitter.Spread
		ttl    time.Duration
		draw   float64
		want   time.Duration
	}{
		{"draw 0 is the early end", jitter.Default, 100 * time.Second, 0, 90 * time.Second},
		{"draw 0.5 is the TTL", jitter.Default, 100 * time.Second, 0.5, 100 * time.Second},
		{"None keeps the TTL", jitter.Spread{}, 1234 * time.Millisecond, 0.9, 1234 * time.Millisecond},
		{"parts of a millisecond are dropped", jitter.Spread{}, 1500 * time.Microsecond, 0, time.Millisecond},
		{"never below 1 ms", jitter.Spread{Fraction: 0.5}, time.Millisecond, 0, time.Millisecond},
		{"not even from nothing", jitter.Default, 0, 0.5, time.Millisecond},
		{"nor from a negative", jitter.Default, -time.Hour, 0.5, time.Millisecond},
		{"no overflow", jitter.Spread{Fraction: 0.9}, math.MaxInt64, 0.999, time.Duration(math.MaxInt64).Truncate(time.Millisecond)},
		{"floor", jitter.Spread{Fraction: 0.5, Floor: 9 * time.Second}, 10 * time.Second, 0, 9 * time.Second},
		{"ceiling", jitter.Spread{Fraction: 0.5, Ceiling: 11 * time.Second}, 10 * time.Second, 0.99, 11 * time.Second},
	} {
		if got := c.spread.At(c.ttl, c.draw); got != c.want {
			t.Errorf("%s: At(%v, %v) = %v, want %v", c.name, c.ttl, c.draw, got, c.want)
		}
	}
}

func TestSeededRepeats(t *testing.T) {
	a, b := jitter.Default.Seeded(7), jitter.Default.Seeded(7)
	for range 100 {
		if x, y := a.TTL(time.Hour), b.TTL(time.Hour); x != y {
			t.Fatalf("same seed, different TTLs: %v and %v", x, y)
		}
	}
}

func TestValidateNamesFieldAndValue(t *testing.T) {
	for _, c := range []struct {
		spread jitter.Spread
		want   string
	}{
		{jitter.Spread{Fraction: -0.1}, "Jitter.Fraction must be in [0,1), got -0.1"},
		{jitter.Spread{Fraction: 1}, "Jitter.Fraction must be in [0,1), got 1"},
		{jitter.Spread{Fraction: math.NaN()}, "Jitter.Fraction must be in [0,1), got NaN"},
		{jitter.Spread{Fraction: math.Inf(1)}, "Jitter.Fraction must be in [0,1), got +Inf"},
		{jitter.Spread{Floor: -1}, "Jitter.Floor must not be negative, got -1ns"},
		{jitter.Spread{Ceiling: time.Microsecond}, "Jitter.Ceiling must be zero or at least 1ms, got 1µs"},
		{jitter.Spread{Floor: 2 * time.Second, Ceiling: time.Second}, "Jitter.Floor must not exceed Jitter.Ceiling, got 2s and 1s"},
	} {
		if err := c.spread.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got error %v, want %q", c.spread, err, c.want)
		}
	}
	for _, s := range []jitter.Spread{jitter.Default, jitter.Spread{}, jitter.Spread{Fraction: 0.999}} {
		if err := s.Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// What IsZero calls zero leaves every TTL as it is, and nothing else does.
func TestIsZero(t *testing.T) {
	for _, s := range []jitter.Spread{{}, jitter.Spread{}.Seeded(1), jitter.Default, {Fraction: 1e-9}, {Floor: 1}, {Ceiling: time.Hour}} {
		if want := s.Fraction == 0 && s.Floor == 0 && s.Ceiling == 0; s.IsZero() != want {
			t.Errorf("%+v: IsZero is %v", s, s.IsZero())
		}
		if s.IsZero() && (s.TTL(time.Second) != time.Second || s.TTL(24*time.Hour) != 24*time.Hour) {
			t.Errorf("%+v is zero and moves a TTL", s)
		}
	}
}

func TestTTLAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(1000, func() { jitter.Default.TTL(time.Hour) }); n != 0 {
		t.Errorf("TTL allocates %v times", n)
	}
}

func BenchmarkTTL(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		jitter.Default.TTL(time.Hour)
	}
}
