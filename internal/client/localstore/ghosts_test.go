package localstore

import (
	"math/rand/v2"
	"testing"
)

// A ghost is found with the time since it left, rounded to the unit, until its bucket has taken in as many as it holds.
func TestGhosts(t *testing.T) {
	for _, n := range []int{1, 10, 1000, 100_000} {
		var g ghosts
		r := rand.New(rand.NewPCG(1, uint64(n)))
		type gone struct {
			hash, at uint32
			ofMain   bool
		}
		var all []gone
		for range n {
			g.now += 1 + r.Uint32N(2)
			g.left++
			l := gone{hash: r.Uint32(), at: g.now, ofMain: r.IntN(2) == 0}
			if l.ofMain {
				l.at = g.left
			}
			g.put(n, l.hash, l.ofMain, l.at)
			all = append(all, l)
		}
		found := 0
		for i := len(all) - 1; i >= 0; i-- {
			ghost, ok := g.take(all[i].hash)
			if !ok {
				continue
			}
			age := g.now - all[i].at
			if all[i].ofMain {
				age = g.left - all[i].at
			}
			if unit := uint32(1) << g.shift; ghost.ofMain == all[i].ofMain && ghost.age < age+unit && age < ghost.age+unit {
				found++
			}
		}
		if found < n*97/100 { // some buckets get more than they hold, and some hashes look alike
			t.Errorf("%d of %d ghosts were found with their times", found, n)
		}
		for _, l := range all {
			if _, ok := g.take(l.hash); ok && n <= 1000 {
				t.Errorf("%d: %v is found again", n, l)
			}
		}
		if books := 4*len(g.cells) + len(g.next); books > 10*n+100 {
			t.Errorf("%d ghosts take %d bytes", 2*n, books)
		}
	}
}

// Most of what is known of ghosts survives that the shard grows, also where times get a larger unit: of each growth, about a tenth is lost.
func TestGhostsOfAShardThatGrows(t *testing.T) {
	var g ghosts
	r := rand.New(rand.NewPCG(3, 4))
	hashes := make([]uint32, 300_000)
	for i := range hashes {
		hashes[i] = r.Uint32()
		g.now++
		g.put(max(i, 1), hashes[i], false, g.now)
	}
	if g.shift < 5 {
		t.Fatalf("times have the unit 2^%d: the test is too small", g.shift)
	}
	found := 0
	for i := 200_000; i < 300_000; i++ {
		age := g.now - uint32(i+1)
		if ghost, ok := g.take(hashes[i]); ok && ghost.age < age+128 && age < ghost.age+128 {
			found++
		}
	}
	if found < 70_000 {
		t.Errorf("%d of 100,000 ghosts were found with their times", found)
	}
}
