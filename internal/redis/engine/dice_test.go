package engine

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// dice draw commands. Keys and members are few, so that commands often find what earlier ones left.
type dice struct {
	*rand.Rand
	mixed bool // commands of all families share their keys
	brief bool // a deadline of a millisecond was drawn: what follows must come after it
	lives int  // drawn so far
	rest  int  // commands left in the transaction
}

func newDice(seed uint64) *dice {
	r := &dice{Rand: rand.New(rand.NewPCG(seed, 0))}
	r.lives = r.IntN(1e6)
	return r
}

// shared are the keys that families have in common.
var shared = []string{"h0", "h1", "s0", "s1", "b0", "k0", "k1", "l0", "l1", "z0", "z1", "lex", "p0", "list", "set", "zset", "dst", "w_1"}

// key returns one of n keys of a family.
func (r *dice) key(family string, n int) string {
	if r.mixed && r.IntN(4) == 0 {
		return one(r, shared...)
	}
	return family + strconv.Itoa(r.IntN(n))
}

// seconds returns a TTL of a quarter of an hour to some days. No two are nearly the same, so which of two ends first does not depend on the
// servers' clocks.
func (r *dice) seconds() int {
	r.lives++
	return 1000 + r.lives*618_033%999_983
}

// moment returns a millisecond.
func (r *dice) moment() string {
	r.brief = true
	return "1"
}

// one returns one of the words.
func one(r *dice, words ...string) string { return words[r.IntN(len(words))] }

// some returns one of the words, or usually none.
func some(r *dice, words ...string) []string {
	if r.IntN(3) > 0 {
		return nil
	}
	return []string{one(r, words...)}
}

// pair returns a name and one of the words, or usually nothing.
func pair(r *dice, name string, words ...string) []string {
	if r.IntN(3) > 0 {
		return nil
	}
	return []string{name, one(r, words...)}
}

func cat(lists ...[]string) (all []string) {
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// long returns a value that just fits into a small hash, or just does not.
func long(r *dice) string {
	size := 64
	if r.IntN(8) == 0 {
		size++
	}
	return strings.Repeat("v", size)
}

func seconds(r *dice) string {
	if r.IntN(4) > 0 {
		return strconv.Itoa(r.seconds())
	}
	return one(r, "0", "-1", "x", "", "1.5", "9223372036854775807", "9223372036854775", strconv.Itoa(70_368_744_177+r.seconds()), "-9223372036854775808")
}

func milliseconds(r *dice) string {
	switch r.IntN(10) {
	case 0:
		return r.moment()
	case 1:
		return one(r, "0", "-1", "x", "9223372036854775807", strconv.Itoa(70_368_744_177_663+1000*r.seconds()))
	}
	return strconv.Itoa(1000 * r.seconds())
}

func unixSeconds(r *dice) string {
	return one(r, "33177117420", "33177117421", "33177117422", "33177117423", "70368744177", "70368744178", "1", "0", "-1", "x", "9223372036854776")
}

func unixMilliseconds(r *dice) string {
	return one(r, "33177117420000", "33177117420001", "33177117420499", "33177117420500", "33177117421000", "70368744177663", "70368744177664", "1", "0", "-5", "x")
}

// lifetime is one of the options of GETEX and its relatives, or the other word, or nothing.
func lifetime(r *dice, other string) []string {
	switch r.IntN(7) {
	case 0:
		return []string{"EX", seconds(r)}
	case 1, 2:
		return []string{"PX", milliseconds(r)}
	case 3:
		return []string{"EXAT", unixSeconds(r)}
	case 4:
		return []string{"PXAT", unixMilliseconds(r)}
	case 5:
		return []string{other}
	}
	return nil
}
