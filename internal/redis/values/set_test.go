package values

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// A set in any form holds, after any changes, exactly the members of the model.
func TestSetsAgainstAMap(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	limits := Limits{SetMaxIntsetEntries: 5, SetMaxListpackEntries: 10, SetMaxListpackValue: 4}
	met := map[string]int{}
	for range 300 {
		s, model := NewSet(), map[string]bool{}
		for step := range 60 {
			member := strconv.Itoa(r.IntN(20))
			if r.IntN(3) == 0 {
				member = []string{"a", "b", "01", "long member", ""}[r.IntN(5)]
			}
			switch r.IntN(10) {
			default:
				if s.Add([]byte(member), limits) == model[member] {
					t.Fatalf("step %d: Add(%q) does not know it", step, member)
				}
				model[member] = true
			case 0, 1, 2:
				if s.Remove([]byte(member)) != model[member] {
					t.Fatalf("step %d: Remove(%q) does not know it", step, member)
				}
				delete(model, member)
			case 3:
				s = s.Clone().(*SetValue)
			case 4:
				for _, m := range s.Pop(r.IntN(3), r.Uint64, limits) {
					if !model[m] {
						t.Fatalf("step %d: popped %q", step, m)
					}
					delete(model, m)
				}
			}
			met[s.Encoding()]++
			var all []string
			s.Each(func(m string) bool {
				all = append(all, m)
				return true
			})
			slices.Sort(all)
			if len(slices.Compact(slices.Clone(all))) != len(model) || len(all) != len(model) || s.Len() != len(model) {
				t.Fatalf("step %d: %q, want %v", step, all, model)
			}
			for m := range model {
				if !s.Has(Bytes(m)) {
					t.Fatalf("step %d: %q is not found", step, m)
				}
			}
		}
	}
	if len(met) != 3 {
		t.Errorf("met %v", met)
	}
}

// Every member has the same chance, in every form and even if most slots of a table are empty.
func TestChoicesAreFair(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	sparse := NewBigSet(0)
	for i := range 1000 {
		sparse.AddName(strconv.Itoa(i), Limits{})
	}
	for i := range 990 {
		sparse.Remove(Bytes(strconv.Itoa(i)))
	}
	forms := map[string]*SetValue{"ints": NewSet(), "small": NewSmallSet(0), "big": NewBigSet(0), "sparse": sparse}
	for i := range 10 {
		for _, name := range []string{"ints", "small", "big"} {
			forms[name].AddName(strconv.Itoa(990+i), DefaultLimits)
		}
	}
	const rounds = 20000
	for name, s := range forms {
		one, three := map[string]int{}, map[string]int{}
		for range rounds {
			one[s.Random(r.Uint64)]++
			sample := s.Sample(3, r.Uint64)
			if len(sample) != 3 || sample[0] == sample[1] || sample[1] == sample[2] || sample[0] == sample[2] {
				t.Fatalf("%s: sampled %q", name, sample)
			}
			for _, m := range sample {
				three[m]++
			}
		}
		for i := range 10 {
			m := strconv.Itoa(990 + i)
			if n := one[m]; n < rounds/10*9/10 || n > rounds/10*11/10 {
				t.Errorf("%s: %s was chosen %d times of %d", name, m, n, rounds)
			}
			if n := three[m]; n < rounds*3/10*9/10 || n > rounds*3/10*11/10 {
				t.Errorf("%s: %s was sampled %d times of %d", name, m, n, rounds)
			}
		}
	}
}

func TestRanksAreDifferentAndAscending(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 1000 {
		size := 1 + r.IntN(20)
		n := r.IntN(25)
		list := ranks(n, size, r.Uint64)
		if len(list) != min(n, size) || !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Fatalf("%d of %d: %v", n, size, list)
		}
		if len(list) > 0 && (list[0] < 0 || list[len(list)-1] >= size) {
			t.Fatalf("%d of %d: %v", n, size, list)
		}
	}
}
