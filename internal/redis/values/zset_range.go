package values

import (
	"bytes"
	"errors"
	"math"
	"sort"
	"strconv"
	"strings"
)

// ScoreRange is what ZCOUNT and ZRANGEBYSCORE take: all scores from Min to Max, or without either.
type ScoreRange struct {
	Min, Max               float64
	WithoutMin, WithoutMax bool
}

// ParseScoreRange reads the two ends as Redis writes them: a number, or "(" and a number that is left out.
func ParseScoreRange(min, max []byte) (r ScoreRange, ok bool) {
	var okMax bool
	r.Min, r.WithoutMin, ok = parseScoreEnd(min)
	r.Max, r.WithoutMax, okMax = parseScoreEnd(max)
	return r, ok && okMax
}

func parseScoreEnd(b []byte) (f float64, without, ok bool) {
	b, without = bytes.CutPrefix(b, []byte("("))
	f, ok = ParseLoose(b)
	return f, without, ok
}

// ParseLoose reads b as Redis reads the ends of score ranges and the weights of SORT. It takes what ParseFloat takes but for hexadecimal
// numbers, and besides nothing at all for 0, and what is too large or too small as the next there is. A zero byte ends the text.
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

// aboveMin and belowMax tell the ends.
func (r *ScoreRange) aboveMin(score float64) bool {
	return score > r.Min || score == r.Min && !r.WithoutMin
}

func (r *ScoreRange) belowMax(score float64) bool {
	return score < r.Max || score == r.Max && !r.WithoutMax
}

// ScoreSpan returns the ranks of the members in a range: from the first to before the last. No member: from is not less than to.
func (z *ZSetValue) ScoreSpan(r ScoreRange) (from, to int) {
	from = z.search(func(score float64, _ string) bool { return !r.aboveMin(score) })
	to = z.search(func(score float64, _ string) bool { return r.belowMax(score) })
	return from, to
}

// LexRange is what ZLEXCOUNT and ZRANGEBYLEX take: all members from Min to Max, or without either.
type LexRange struct {
	Min, Max LexEnd
}

// LexEnd is one end: a member, or beyond all members where Infinite is -1 or 1.
type LexEnd struct {
	Member   string
	Without  bool
	Infinite int
}

// ParseLexRange reads the two ends as Redis writes them: "[" or, without it, "(" and a member, "-" or "+".
func ParseLexRange(min, max []byte) (r LexRange, ok bool) {
	var okMax bool
	r.Min, ok = parseLexEnd(min)
	r.Max, okMax = parseLexEnd(max)
	return r, ok && okMax
}

func parseLexEnd(b []byte) (e LexEnd, ok bool) {
	switch {
	case string(b) == "-":
		return LexEnd{Infinite: -1}, true
	case string(b) == "+":
		return LexEnd{Infinite: 1}, true
	case len(b) > 0 && (b[0] == '[' || b[0] == '('):
		return LexEnd{Member: string(b[1:]), Without: b[0] == '('}, true
	}
	return e, false
}

func (r *LexRange) aboveMin(member string) bool {
	e := &r.Min
	return e.Infinite < 0 || e.Infinite == 0 && (member > e.Member || member == e.Member && !e.Without)
}

func (r *LexRange) belowMax(member string) bool {
	e := &r.Max
	return e.Infinite > 0 || e.Infinite == 0 && (member < e.Member || member == e.Member && !e.Without)
}

// LexSpan is ScoreSpan for a range of members. It means something where all scores are equal; where they are not, the small form goes
// from member to member as Redis's does, from the end if reverse, and the large one finds something, as Redis's does.
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

// search returns how many members come before the first of which early is false; early is true up to some rank and false from there on.
func (z *ZSetValue) search(early func(score float64, member string) bool) int {
	if z.large != nil {
		return z.large.search(early)
	}
	return sort.Search(len(z.small), func(i int) bool { return !early(z.small[i].score, z.small[i].member) })
}
