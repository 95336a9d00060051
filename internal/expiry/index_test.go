package expiry

import (
	"math/rand/v2"
	"testing"
)

func TestIndexAgreesWithAListOfDeadlines(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var x Index
	list := map[uint32]int64{}
	now := int64(1000)
	for range 200000 {
		id := uint32(r.IntN(300))
		switch r.IntN(6) {
		case 0, 1, 2:
			d := now + int64(r.IntN(2000)) - 100
			x.Set(id, d)
			list[id] = d
		case 3:
			x.Remove(id)
			delete(list, id)
		case 4:
			now += int64(r.IntN(50))
		case 5:
			m := r.IntN(10)
			n := x.Reap(now, m, func(id uint32) {
				if d, ok := list[id]; !ok || !Dead(d, now) {
					t.Fatalf("reaped %d: %d %v at %d", id, d, ok, now)
				}
				delete(list, id)
			})
			if n < m {
				for id, d := range list {
					if Dead(d, now) {
						t.Fatalf("left %d dead", id)
					}
				}
			}
		}
		if x.Len() != len(list) || x.Deadline(id) != list[id] {
			t.Fatal("differs")
		}
	}
}
