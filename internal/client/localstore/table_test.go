package localstore

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// TestTableUnderCollisions gives all keys a handful of hashes, so that most entries are far from home and the counts of
// who went by run over, and compares with a map.
func TestTableUnderCollisions(t *testing.T) {
	effort.Alone(t)
	for _, hashes := range []uint32{1, 3, 1 << 31} {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		table := newTable[int](1)
		want := map[string]*entry[int]{}
		hashOf := func(id uint32) uint32 { return id % hashes * 0x9e3779b1 }
		for step := range 20_000 {
			id := r.Uint32N(700)
			key, hash := fmt.Sprint(id), hashOf(id)
			e := find(table, hash, key)
			if e != want[key] {
				t.Fatalf("step %d: found %v, want %v", step, e, want[key])
			}
			next := &entry[int]{key: key, id: id, value: step}
			switch {
			case e == nil:
				if table.full() {
					table = table.grown(hashOf)
				}
				table.insert(hash, next)
				want[key] = next
			case r.IntN(3) == 0:
				table.replace(hash, next)
				want[key] = next
			default:
				if got := table.remove(hash, id); got != e {
					t.Fatalf("step %d: removed %v, want %v", step, got, e)
				}
				delete(want, key)
			}
			if table.len != len(want) {
				t.Fatalf("step %d: %d entries, want %d", step, table.len, len(want))
			}
		}
		table.each(func(e *entry[int]) bool {
			if want[e.key] != e {
				t.Errorf("%q is %v, want %v", e.key, e, want[e.key])
			}
			delete(want, e.key)
			table.remove(hashOf(e.id), e.id)
			return true
		})
		if len(want) != 0 {
			t.Errorf("%d entries were not found", len(want))
		}
		for b := range table.buckets {
			if tags := table.buckets[b].tags.Load(); tags != 0 && tags>>passedBy != passedMax {
				t.Errorf("an empty table has tags %016x in bucket %d", tags, b)
			}
		}
	}
}

func TestMatching(t *testing.T) {
	for tag := uint64(1); tag < 256; tag++ {
		for i := range perBucket {
			tags := tag<<(8*i) | 0xff<<passedBy
			if m := matching(tags, tag); bits.TrailingZeros64(m) != 8*i+7 {
				t.Fatalf("tag %02x in %016x: %016x", tag, tags, m)
			}
			if m := matching(tags, tag%255+1); m != 0 {
				t.Fatalf("tag %02x in %016x: %016x", tag%255+1, tags, m)
			}
		}
	}
}
