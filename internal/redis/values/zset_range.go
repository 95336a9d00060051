package values

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"sort"
	"strconv"
	"strings"
)

// ScoreRange is the range of ZCOUNT and ZRANGEBYSCORE, LexRange that of ZLEXCOUNT and ZRANGEBYLEX.
type (
	ScoreRange = Ends[float64]
	LexRange   = Ends[string]
)

// Ends are the two ends of a range.
type Ends[T cmp.Ordered] struct{ Min, Max End[T] }

// End is a score or a member, or beyond all of them if Infinite is -1 or 1.
type End[T cmp.Ordered] struct {
	At       T
	Without  bool // At itself is excluded
	Infinite int
}

func (r *Ends[T]) aboveMin(v T) bool {
	e := &r.Min
	return e.Infinite < 0 || e.Infinite == 0 && (v > e.At || v == e.At && !e.Without)
}

func (r *Ends[T]) belowMax(v T) bool {
	e := &r.Max
	return e.Infinite > 0 || e.Infinite == 0 && (v < e.At || v == e.At && !e.Without)
}

// ParseScoreRange reads the two ends in Redis's notation: a number, or "(" and an excluded number.
func ParseScoreRange(min, max []byte) (ScoreRange, bool) { return parseEnds(min, max, parseScoreEnd) }

// ParseLexRange reads the two ends in Redis's notation: "[" and a member, "(" and an excluded member, "-" or "+".
func ParseLexRange(min, max []byte) (LexRange, bool) { return parseEnds(min, max, parseLexEnd) }

func parseEnds[T cmp.Ordered](min, max []byte, parse func([]byte) (End[T], bool)) (r Ends[T], ok bool) {
	var okMax bool
	r.Min, ok = parse(min)
	r.Max, okMax = parse(max)
	return r, ok && okMax
}

func parseScoreEnd(b []byte) (e End[float64], ok bool) {
	b, e.Without = bytes.CutPrefix(b, []byte("("))
	e.At, ok = ParseLoose(b)
	return e, ok
}

func parseLexEnd(b []byte) (e End[string], ok bool) {
	switch {
	case string(b) == "-":
		e.Infinite = -1
	case string(b) == "+":
		e.Infinite = 1
	case len(b) > 0 && (b[0] == '[' || b[0] == '('):
		e.At, e.Without = string(b[1:]), b[0] == '('
	default:
		return e, false
	}
	return e, true
}

// ParseLoose reads b as Redis reads the ends of score ranges and the weights of SORT. It accepts what ParseFloat does except hexadecimal
// numbers; an empty text is 0, and numbers out of range become the nearest possible. A zero byte ends the text.
func ParseLoose(b []byte) (f float64, ok bool) {
	b, _, _ = bytes.Cut(b, []byte{0})
	if len(b) == 0 {
		return 0, true
	}
	text := string(b)
	if strings.ContainsAny(text, "_xX") {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, (err == nil || errors.Is(err, strconv.ErrRange)) && !math.IsNaN(f)
}

// ScoreSpan returns the half-open range of ranks of the members in r. It is empty if from is not less than to.
func (z *ZSetValue) ScoreSpan(r ScoreRange) (from, to int) {
	from = z.search(func(score float64, _ string) bool { return !r.aboveMin(score) })
	to = z.search(func(score float64, _ string) bool { return r.belowMax(score) })
	return from, to
}

// LexSpan is ScoreSpan for a range of members. It is meaningful only if all scores are equal. If they are not, the result is Redis's all the
// same: the small form is walked member by member, from the end if reverse, and the large one is searched.
func (z *ZSetValue) LexSpan(r LexRange, reverse bool) (from, to int) {
	if z.large != nil {
		from = z.search(func(_ float64, member string) bool { return !r.aboveMin(member) })
		to = z.search(func(_ float64, member string) bool { return r.belowMax(member) })
		return from, to
	}
	n := len(z.small)
	if n == 0 || !r.aboveMin(z.small[n-1].member) || !r.belowMax(z.small[0].member) {
		return 0, 0
	}
	if reverse {
		for to = n; to > 0 && !r.belowMax(z.small[to-1].member); to-- {
		}
		for from = to; from > 0 && r.aboveMin(z.small[from-1].member); from-- {
		}
		return from, to
	}
	for from < n && !r.aboveMin(z.small[from].member) {
		from++
	}
	for to = from; to < n && r.belowMax(z.small[to].member); to++ {
	}
	return from, to
}

// search returns how many members come before the first for which early is false; early must be true up to some rank and false from there on.
func (z *ZSetValue) search(early func(score float64, member string) bool) int {
	if z.large != nil {
		return z.large.search(early)
	}
	return sort.Search(len(z.small), func(i int) bool { return !early(z.small[i].score, z.small[i].member) })
}
