package localstore_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// hitRatio asks a store of that many entries for n keys, and stores what is missing.
func hitRatio(t *testing.T, entries, n int, next func(i int) int) float64 {
	v := localstore.NewValues[int](newStore(t, localstore.Options{MaxEntries: entries}))
	hits := 0
	for i := range n {
		key := strconv.Itoa(next(i))
		if _, _, ok := v.Get(key, 0); ok {
			hits++
		} else {
			v.Set(key, i, 0, expiry.None, 0)
		}
	}
	return float64(hits) / float64(n)
}

// What each workload needs is the opposite of what another needs; bench compares with peers.
func TestPolicy(t *testing.T) {
	effort.Alone(t)
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 1, 99_999)
	at := 0.0
	for _, c := range []struct {
		name     string
		entries  int
		requests int
		next     func(i int) int
		least    float64
	}{
		{"a loop that is a little too long keeps most of what fits", 1000, 30_000, func(i int) int { return i % 1100 }, 0.84},
		{"so does one in several shards", 10_000, 300_000, func(i int) int { return i % 11_000 }, 0.84},
		{"a walk keeps what is recent", 1000, 200_000, func(int) int { at += r.NormFloat64() * 10; return int(at) }, 0.86},
		{"popularity", 1000, 200_000, func(int) int { return int(zipf.Uint64()) }, 0.72},
		{"scans leave what is popular alone", 1000, 200_000, func(i int) int {
			if i/1000%2 == 1 {
				return 1_000_000 + i
			}
			return int(zipf.Uint64())
		}, 0.34},
		{"a walk after a loop", 1000, 200_000, func(i int) int {
			if i < 30_000 {
				return 1_000_000 + i%1100
			}
			at += r.NormFloat64() * 10
			return int(at)
		}, 0.85},
		{"a loop after a walk", 1000, 200_000, func(i int) int {
			if i < 60_000 {
				at += r.NormFloat64() * 10
				return int(at)
			}
			return 1_000_000 + i%1100
		}, 0.85},
	} {
		if got := hitRatio(t, c.entries, c.requests, c.next); got < c.least {
			t.Errorf("%s: %.3f, want at least %.2f", c.name, got, c.least)
		} else {
			t.Logf("%s: %.3f", c.name, got)
		}
	}
}
