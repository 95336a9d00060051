package engine

import (
	"strconv"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// After all keys are removed next to nothing is left, and keys that stay are found as before.
func TestMemoryOfKeysThatAreGoneIsGivenBack(t *testing.T) {
	effort.Alone(t)
	n := effort.Times(10_000, 1_000_000)
	for _, kept := range []int{0, 3, 100} {
		s := newStage(Options{Seed: 1, MaxMemory: 1 << 30})
		s.do("a", "SET", "first", "v")
		s.do("a", "DEL", "first")
		before := int64(heap())
		for i := range n {
			s.do("a", "SET", "key:"+strconv.Itoa(i), "v", "PX", "1000")
		}
		for i := range kept {
			s.do("a", "PERSIST", "key:"+strconv.Itoa(i*n/max(kept, 1)))
		}
		full := int64(heap()) - before
		s.sleep(2000)
		d := s.dbs[0]
		if d.len() != kept {
			t.Fatalf("%d keys are left, want %d", d.len(), kept)
		}
		if held := d.held(); held > max(kept, 8)*2*pageSize {
			t.Errorf("%d keys hold %d slots", kept, held)
		}
		if left := int64(heap()) - before; left > full/5+int64(kept)*12_000 {
			t.Errorf("%d keys took %d bytes; when %d were left it was %d", n, full, kept, left)
		}
		if used := s.weight(); used > int64(emptyWeight+200*kept) {
			t.Errorf("%d keys weigh %d", kept, used)
		}
		for i := range kept {
			if got := s.do("a", "GET", "key:"+strconv.Itoa(i*n/kept)); got != `"v"` {
				t.Errorf("key %d of %d is %s", i, kept, got)
			}
		}
		met, calls := map[string]int{}, 0
		for cursor := "0"; calls == 0 || cursor != "0"; calls++ {
			s.Do(s.now, s.session("a"), command("SCAN", cursor))
			v, err := readOne(s.session("a"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range v.List[1].List {
				met[name.Text]++
			}
			cursor = v.List[0].Text
		}
		if len(met) != kept || calls > 10+2*kept {
			t.Errorf("SCAN met %d of %d keys in %d calls", len(met), kept, calls)
		}
		for i := range 1000 { // and there is room again
			s.do("a", "SET", "new:"+strconv.Itoa(i), "v", "PX", "1000")
		}
		if got := s.do("a", "DBSIZE"); got != ":"+strconv.Itoa(1000+kept) {
			t.Errorf("DBSIZE %s", got)
		}
	}
}
