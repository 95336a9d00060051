package values

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A sorted set in either form equals, after any changes, the sorted list of its members.
func TestSortedSetsAgainstASortedList(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	small := DefaultLimits
	large := Limits{}
	for _, limits := range []Limits{small, large} {
		z, model := NewZSet(), map[string]float64{}
		for step := range 4000 {
			member := strconv.Itoa(r.IntN(100))
			switch r.IntN(8) {
			case 0, 1, 2, 3:
				score := []float64{1, 2, float64(r.IntN(50)), r.NormFloat64(), math.Inf(-1)}[r.IntN(5)]
				z.Set([]byte(member), score, limits)
				model[member] = score
			case 4, 5:
				_, was := model[member]
				if z.Remove([]byte(member)) != was {
					t.Fatalf("step %d: Remove(%s) is not %v", step, member, was)
				}
				delete(model, member)
			case 6:
				from := r.IntN(len(model) + 1)
				to := min(from+r.IntN(4), len(model))
				for _, s := range sortedModel(model)[from:to] {
					delete(model, s.member)
				}
				z.RemoveRanks(from, to)
			case 7:
				z = z.Clone().(*ZSetValue)
			}
			compareWithModel(t, z, sortedModel(model), r)
			if t.Failed() {
				t.Fatalf("after %d steps", step)
			}
		}
		if want := limits == large; (z.Encoding() == "skiplist") != want {
			t.Errorf("the encoding is %s", z.Encoding())
		}
	}
}

func sortedModel(model map[string]float64) (list []scored) {
	for m, score := range model {
		list = append(list, scored{m, score})
	}
	slices.SortFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
	})
	return list
}

func compareWithModel(t *testing.T, z *ZSetValue, want []scored, r *rand.Rand) {
	t.Helper()
	if z.Len() != len(want) {
		t.Errorf("Len is %d, want %d", z.Len(), len(want))
	}
	from := r.IntN(len(want) + 1)
	to := from + r.IntN(len(want)-from+1)
	var forth, back []scored
	z.Each(from, to, false, func(m string, s float64) bool { forth = append(forth, scored{m, s}); return true })
	z.Each(from, to, true, func(m string, s float64) bool { back = append(back, scored{m, s}); return true })
	slices.Reverse(back)
	if !slices.Equal(forth, want[from:to]) || !slices.Equal(back, want[from:to]) {
		t.Errorf("the ranks from %d to before %d are %v, backwards %v, want %v", from, to, forth, back, want[from:to])
	}
	for i, s := range want {
		rank, score, ok := z.Rank([]byte(s.member))
		if m, at := z.At(i); rank != i || score != s.score || !ok || m != s.member || at != s.score {
			t.Errorf("%v has rank %d and score %v, rank %d has %q", s, rank, score, i, m)
		}
	}
	span := ScoreRange{
		Min: End[float64]{At: float64(r.IntN(20)), Without: r.IntN(2) == 0},
		Max: End[float64]{At: float64(r.IntN(30)), Without: r.IntN(2) == 0},
	}
	low, high := z.ScoreSpan(span)
	for i, s := range want {
		min, max := span.Min, span.Max
		inside := (s.score > min.At || s.score == min.At && !min.Without) && (s.score < max.At || s.score == max.At && !max.Without)
		if inside != (low <= i && i < high) {
			t.Errorf("%v is at %d, the span of %+v is %d to %d", s, i, span, low, high)
		}
	}
}

// The tree stays low whatever the order of insertion: a rank is found in some tens of steps.
func TestTheTreeIsBalanced(t *testing.T) {
	const n = 1 << 16
	for name, score := range map[string]func(i int) float64{
		"ascending":  func(i int) float64 { return float64(i) },
		"descending": func(i int) float64 { return float64(-i) },
		"equal":      func(int) float64 { return 0 },
	} {
		z := NewBigZSet(n)
		for i := range n {
			z.SetOf(strconv.Itoa(1e6+i), score(i), Limits{})
		}
		if height := z.large.height(z.large.root); height > 70 {
			t.Errorf("%s: the height is %d", name, height)
		}
	}
}

func (r *ranking) height(n link) int {
	if n == 0 {
		return 0
	}
	d := &r.at(n).data
	return 1 + max(r.height(d.left), r.height(d.right))
}

func TestEndsOfRanges(t *testing.T) {
	for text, want := range map[string]struct {
		f       float64
		without bool
		ok      bool
	}{
		"1": {1, false, true}, "(1": {1, true, true}, "+1": {1, false, true}, "(": {0, true, true}, "": {0, false, true},
		"-inf": {math.Inf(-1), false, true}, "(+Infinity": {math.Inf(1), true, true}, "1e400": {math.Inf(1), false, true}, "1e-400": {0, false, true},
		"1\x00x": {1, false, true}, ".5": {.5, false, true},
		"nan": {}, "0x10": {}, " 1": {}, "1 ": {}, "((1": {without: true}, "1e": {}, "1_0": {}, "x": {},
	} {
		e, ok := parseScoreEnd([]byte(text))
		if ok != want.ok || e.Without != want.without || ok && e.At != want.f {
			t.Errorf("%q is %+v, %v", text, e, ok)
		}
	}
	for text, ok := range map[string]bool{"-": true, "+": true, "[": true, "(": true, "[a": true, "(a": true, "": false, "a": false, "--": false, "+a": false} {
		if _, got := parseLexEnd([]byte(text)); got != ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}
