package ttlaudit

import "math"

// tally counts the keys of one pattern. Its fields are exported so that an audit's state can be saved.
type tally struct {
	Keys, NoTTL, TooLong int64
	All, Endless         moments // sizes of some of the keys, and of some of those without a TTL
	Example              string  // a key without a TTL: the first alphabetically
	heir                 *tally  // the tally it was merged into
}

// latest returns the tally that t was merged into, or t.
func (t *tally) latest() *tally {
	for t.heir != nil {
		t = t.heir
	}
	return t
}

func (t *tally) add(o *tally) {
	t.Keys += o.Keys
	t.NoTTL += o.NoTTL
	t.TooLong += o.TooLong
	t.All.add(o.All)
	t.Endless.add(o.Endless)
	if o.Example != "" && (t.Example == "" || o.Example < t.Example) {
		t.Example = o.Example
	}
}

// moments are what is kept of a sample: enough for its mean and variance.
type moments struct {
	N          int64
	Sum, Sumsq float64
}

func (m *moments) see(x float64) {
	m.N++
	m.Sum += x
	m.Sumsq += x * x
}

func (m *moments) add(o moments) {
	m.N += o.N
	m.Sum += o.Sum
	m.Sumsq += o.Sumsq
}

// total estimates the sum over this many keys from the sample m, or from like if m is empty, and the variance of the estimate.
func (m moments) total(of int64, like moments) (sum, variance float64) {
	left := 1.0 // share of the keys that are not in m
	switch {
	case of == 0:
		return 0, 0
	case m.N == 0:
		m = like
	default:
		left = max(1-float64(m.N)/float64(of), 0)
	}
	if m.N == 0 {
		return 0, 0
	}
	n, all := float64(m.N), float64(of)
	sum = m.Sum / n * all
	if m.N > 1 {
		spread := max(m.Sumsq-m.Sum*m.Sum/n, 0) / (n - 1)
		variance = all * all * spread / n * left
	}
	return sum, variance
}

// Estimate is a figure with its 95 % confidence interval. If the figure was counted, all three are the same.
type Estimate struct {
	Value int64 `json:"value"`
	Low   int64 `json:"low"`
	High  int64 `json:"high"`
}

// Exact reports whether the figure was counted.
func (e Estimate) Exact() bool { return e.Low == e.High }

// z is how many standard deviations contain 95 %.
const z = 1.96

func normal(sum, variance float64) *Estimate {
	d := z * math.Sqrt(variance)
	return &Estimate{int64(math.Round(sum)), int64(math.Round(max(sum-d, 0))), int64(math.Round(sum + d))}
}

// proportion estimates how many of all keys have a property that hits of the seen ones have. It is Wilson's interval, which narrows as seen
// approaches all and never contradicts what was seen.
func proportion(hits, seen, all int64) Estimate {
	if seen == 0 {
		return Estimate{0, 0, all}
	}
	if all = max(all, seen); all == seen {
		return Estimate{hits, hits, hits}
	}
	n, p, N := float64(seen), float64(hits)/float64(seen), float64(all)
	n *= (N - 1) / (N - float64(seen)) // the correction for a finite population
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	d := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	within := func(x float64) int64 {
		return min(max(int64(math.Round(x*N)), hits), all-(seen-hits))
	}
	return Estimate{within(p), within(middle - d), within(middle + d)}
}
