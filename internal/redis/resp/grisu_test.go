package resp_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// drawDouble draws a finite number: random bits, few decimal digits, or near a power of two or ten.
func drawDouble(r *rand.Rand) float64 {
	for {
		var f float64
		switch r.IntN(5) {
		case 0:
			f = math.Float64frombits(r.Uint64())
		case 1:
			f = (r.Float64() - 0.5) * math.Pow10(r.IntN(40)-20)
		case 2:
			f = float64(r.IntN(2e6)-1e6) / math.Pow10(r.IntN(20))
		case 3:
			f = math.Float64frombits(math.Float64bits(math.Ldexp(1, r.IntN(2000)-1000)) + uint64(r.IntN(5)) - 2)
		case 4:
			f = math.Float64frombits(math.Float64bits(math.Pow10(r.IntN(600)-300)) + uint64(r.IntN(5)) - 2)
		}
		if !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
	}
}

func TestDoublesReadBackAsThemselves(t *testing.T) {
	effort.Alone(t)
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	var buf []byte
	for range 200000 {
		f := drawDouble(r)
		buf = resp.AppendDouble(buf[:0], f)
		if back, err := strconv.ParseFloat(string(buf), 64); err != nil || back != f {
			t.Fatalf("seed %d: %b is written %s, which is %b", seed, f, buf, back)
		}
	}
}

func TestDoublesThatAreNotTheNearestOfTheShortest(t *testing.T) {
	for f, want := range map[float64]string{
		196552962118081.375: "196552962118081.37", // strconv: .38
		5e-324:              "5e-324",
		math.MaxFloat64:     "1.7976931348623157e+308",
		0.1:                 "0.1",
		0.3:                 "0.3",
		3.0000000000000004:  "3.0000000000000004",
	} {
		if got := string(resp.AppendDouble(nil, f)); got != want {
			t.Errorf("%b is written %s, want %s", f, got, want)
		}
	}
}
