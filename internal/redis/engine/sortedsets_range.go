package engine

import (
	"bytes"
	"math"
	"strconv"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// zrangeCommands are about a part of a sorted set.
var zrangeCommands = []Command{
	{Name: "zcount", Arity: 4, Flags: ReadOnly | Fast, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zcount(c, zrange{by: byScore, limit: -1}) }},
	{Name: "zlexcount", Arity: 4, Flags: ReadOnly | Fast, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zcount(c, zrange{by: byLex, limit: -1}) }},
	{Name: "zrange", Arity: -4, Flags: ReadOnly, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zrangeReply(c, zrange{either: true}) }},
	{Name: "zrangestore", Arity: -5, Flags: Write | DenyOOM, Cats: CatSortedSet, Keys: twoKeys, run: zrangestoreCommand},
	{Name: "zrevrange", Arity: -4, Flags: ReadOnly, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zrangeReply(c, zrange{by: byRank, reverse: true}) }},
	{Name: "zrangebyscore", Arity: -4, Flags: ReadOnly, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zrangeReply(c, zrange{by: byScore}) }},
	{Name: "zrevrangebyscore", Arity: -4, Flags: ReadOnly, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zrangeReply(c, zrange{by: byScore, reverse: true}) }},
	{Name: "zrangebylex", Arity: -4, Flags: ReadOnly, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zrangeReply(c, zrange{by: byLex}) }},
	{Name: "zrevrangebylex", Arity: -4, Flags: ReadOnly, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zrangeReply(c, zrange{by: byLex, reverse: true}) }},
	{Name: "zremrangebyrank", Arity: 4, Flags: Write, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zremrange(c, zrange{by: byRank, limit: -1}) }},
	{Name: "zremrangebyscore", Arity: 4, Flags: Write, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zremrange(c, zrange{by: byScore, limit: -1}) }},
	{Name: "zremrangebylex", Arity: 4, Flags: Write, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zremrange(c, zrange{by: byLex, limit: -1}) }},
}

const (
	errScoreRange = "ERR min or max is not a float"
	errLexRange   = "ERR min or max not valid string range item"
)

// rangeBy says what the ends of a range are: ranks, scores or members.
type rangeBy uint8

const (
	byAny rangeBy = iota // ZRANGE, until an option says which
	byRank
	byScore
	byLex
)

// zrange is a range of a sorted set, in the terms of ZRANGE: every other range command is ZRANGE with some options preset.
type zrange struct {
	by            rangeBy
	reverse       bool
	either        bool // the REV option may be given
	withScores    bool
	offset, limit int64 // LIMIT; a negative limit means none

	from, to int64 // by rank
	score    values.ScoreRange
	lex      values.LexRange
}

// parse reads the ends at argument i and the options behind them.
func (r *zrange) parse(c *call, i int, storing bool) {
	r.limit = -1
	for words := c.options(i + 2); words.more(); {
		switch {
		case !storing && words.word("WITHSCORES", 0):
			r.withScores = true
		case words.word("LIMIT", 2):
			r.offset, r.limit = c.span(words.next())
			words.next()
		case r.either && words.word("REV", 0):
			r.reverse, r.either = true, false
		case r.by == byAny && words.word("BYLEX", 0):
			r.by = byLex
		case r.by == byAny && words.word("BYSCORE", 0):
			r.by = byScore
		default:
			c.fail(errSyntax)
		}
	}
	if r.by == byAny {
		r.by = byRank
	}
	switch {
	case r.limit != -1 && r.by == byRank:
		c.fail("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	case r.withScores && r.by == byLex:
		c.fail("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	}
	r.ends(c, i)
}

// ends reads the two ends from argument i on: the high one first in a reversed range, unless the ends are ranks.
func (r *zrange) ends(c *call, i int) {
	low, high := c.args[i], c.args[i+1]
	if r.reverse {
		low, high = high, low
	}
	var ok bool
	switch r.by {
	case byScore:
		if r.score, ok = values.ParseScoreRange(low, high); !ok {
			c.fail(errScoreRange)
		}
	case byLex:
		if r.lex, ok = values.ParseLexRange(low, high); !ok {
			c.fail(errLexRange)
		}
	default:
		r.from, r.to = c.span(i)
	}
}

// span returns the range as a half-open range of ranks of z.
func (r *zrange) span(z *values.ZSetValue) (from, to int) {
	switch r.by {
	case byScore:
		from, to = z.ScoreSpan(r.score)
	case byLex:
		from, to = z.LexSpan(r.lex, r.reverse)
	default:
		from, to = within(r.from, r.to, z.Len())
		if r.reverse {
			from, to = z.Len()-to, z.Len()-from
		}
		return from, to
	}
	return r.cut(from, to, z.Encoding() == "skiplist")
}

// cut applies LIMIT to a half-open range of ranks. A negative offset leaves nothing, except in a skip list: there Redis counts it from the
// far end.
func (r *zrange) cut(from, to int, skiplist bool) (int, int) {
	offset, n := r.offset, int64(max(to-from, 0))
	if offset < 0 {
		if !skiplist || offset < -n {
			return 0, 0
		}
		offset += n
	}
	if offset >= n {
		return 0, 0
	}
	n -= offset
	if r.limit >= 0 {
		n = min(n, r.limit)
	}
	if r.reverse {
		to -= int(offset)
		return to - int(n), to
	}
	from += int(offset)
	return from, from + int(n)
}

func zrangeReply(c *call, r zrange) {
	r.parse(c, 2, false)
	z := readAs[*values.ZSetValue](c, c.args[1])
	if c.failed {
		return
	}
	from, to := r.span(z)
	c.pairHead(to-from, r.withScores)
	z.Each(from, to, r.reverse, c.scored(r.withScores))
}

// pairHead announces n members or fields, each with its score or value if with is set. RESP3 has an array for each pair.
func (c *call) pairHead(n int, with bool) {
	if with && c.out.Proto != 3 {
		n *= 2
	}
	c.out.Array(n)
}

// scored returns a function that replies with one of them.
func (c *call) scored(withScores bool) func(member string, score float64) bool {
	if !withScores {
		return func(member string, _ float64) bool {
			c.out.BulkString(member)
			return true
		}
	}
	return func(member string, score float64) bool {
		if c.out.Proto == 3 {
			c.out.Array(2)
		}
		c.out.BulkString(member)
		c.out.Double(score)
		return true
	}
}

func zrangestoreCommand(c *call) {
	r := zrange{either: true}
	r.parse(c, 3, true)
	z := readAs[*values.ZSetValue](c, c.args[2])
	if c.failed {
		return
	}
	result := values.NewZSet()
	from, to := r.span(z)
	if r.by == byRank {
		result.Grow(to-from, 0, c.e.limits)
	}
	z.Each(from, to, r.reverse, func(member string, score float64) bool {
		result.SetOf(member, score, c.e.limits)
		return true
	})
	c.storeAt(c.args[1], result, 1, notifyZSet, c.cmd.Name)
}

func zcount(c *call, r zrange) {
	r.ends(c, 2)
	z := readAs[*values.ZSetValue](c, c.args[1])
	if !c.failed {
		from, to := r.span(z)
		c.number(to - from)
	}
}

func zremrange(c *call, r zrange) {
	r.ends(c, 2)
	key := c.args[1]
	z := takeAs[*values.ZSetValue](c, key)
	if c.failed {
		return
	}
	from, to := r.span(z)
	if from < to {
		z.RemoveRanks(from, to)
	}
	c.took(key, z, to-from, notifyZSet, c.cmd.Name)
	c.number(to - from)
}

// scanScore formats a score as ZSCAN does. Redis has two ways: a score from a listpack is its shortest text, one from a skip list is printed
// as a long double of 17 digits.
func scanScore(score float64, large bool) string {
	var buf [40]byte
	if !large || math.IsInf(score, 0) {
		return string(resp.AppendDouble(buf[:0], score))
	}
	return string(appendG17(buf[:0], score))
}

// appendG17 appends f as C's "%.17g" does.
func appendG17(dst []byte, f float64) []byte {
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', 16, 64)
	e := bytes.LastIndexByte(dst, 'e')
	exp, _ := strconv.Atoi(string(dst[e+1:]))
	if exp < -4 || exp >= 17 {
		tail := string(dst[e:]) // Go and C both write at least two digits
		return append(trimZeros(dst[:e]), tail...)
	}
	return trimZeros(strconv.AppendFloat(dst[:start], f, 'f', 16-exp, 64))
}

// trimZeros removes the zeros at the end of a decimal fraction.
func trimZeros(b []byte) []byte {
	if bytes.IndexByte(b, '.') < 0 {
		return b
	}
	return bytes.TrimSuffix(bytes.TrimRight(b, "0"), []byte("."))
}
