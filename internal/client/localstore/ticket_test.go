package localstore_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/client/localstore"
)

func TestTickets(t *testing.T) {
	s := newStore(t, localstore.Options{MaxEntries: 100})
	v, other := localstore.NewValues[int](s), localstore.NewValues[string](s)
	const deadline, now = 2000, 1000
	insert := func(ticket localstore.Ticket, value int, want localstore.Outcome) {
		t.Helper()
		if got := v.Insert("k", ticket, value, 0, deadline, now); got != want {
			t.Errorf("Insert of %d: %v, want %v", value, got, want)
		}
	}
	have := func(want int, there bool) {
		t.Helper()
		if got, _, ok := v.Get("k", now); got != want || ok != there {
			t.Errorf("k is %d, %v; want %d, %v", got, ok, want, there)
		}
	}
	a := s.Ticket("k")
	insert(a, 1, localstore.Stored)
	have(1, true)
	other.Set("k", "x", 0, deadline, now)
	if !s.Invalidate("k") || s.Invalidate("k") {
		t.Error("Invalidate does not tell whether a view had the key")
	}
	if _, _, ok := other.Get("k", now); ok {
		t.Error("another view still has the key")
	}
	insert(a, 1, localstore.Outdated)
	have(0, false)
	b := s.Ticket("k")
	insert(b, 2, localstore.Stored)
	insert(a, 1, localstore.Outdated)
	have(2, true)
	s.InvalidateAll("")
	have(0, false)
	insert(b, 2, localstore.Outdated)
	if s.Len() != 0 || s.Bytes() != 0 {
		t.Errorf("what was refused is still in the books: %d entries, %d bytes", s.Len(), s.Bytes())
	}
}

// Readers copy what writers change, and hear of each change a little later. When all is quiet no copy is older than what
// it is a copy of.
func TestNoCopyStaysOlderThanTheLastChange(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const keys = 50
	s := newStore(t, localstore.Options{MaxEntries: 40}) // so that room has to be made, too
	v := localstore.NewValues[int64](s)
	var originals [keys]atomic.Int64
	pushes := make(chan int, 1000)
	var writers, readers, heard sync.WaitGroup
	var outdated atomic.Int64
	for g := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(g)))
		writers.Go(func() {
			for range 5000 {
				k := r.IntN(keys)
				originals[k].Add(1)
				pushes <- k
			}
		})
	}
	for g := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(100+g)))
		readers.Go(func() {
			for range 20_000 {
				k := r.IntN(keys)
				key := fmt.Sprint(k)
				t := s.Ticket(key)
				original := originals[k].Load()
				if r.IntN(8) == 0 {
					runtime.Gosched() // now it may change
				}
				if v.Insert(key, t, original, 0, 1<<40, 0) == localstore.Outdated {
					outdated.Add(1)
				}
			}
		})
	}
	heard.Go(func() {
		for k := range pushes {
			s.Invalidate(fmt.Sprint(k))
		}
	})
	writers.Wait()
	readers.Wait()
	close(pushes)
	heard.Wait()
	for k := range keys {
		if got, _, ok := v.Get(fmt.Sprint(k), 0); ok && got != originals[k].Load() {
			t.Errorf("key %d: the copy is %d, the original %d", k, got, originals[k].Load())
		}
	}
	t.Logf("%d inserts were refused", outdated.Load())
}
