package localstore_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    localstore.Options
		want string
	}{
		{localstore.Options{}, "Options.MaxBytes or Options.MaxEntries"},
		{localstore.Options{MaxBytes: -1}, "Options.MaxBytes must not be negative, got -1"},
		{localstore.Options{MaxEntries: -7}, "Options.MaxEntries must be in 0..2147483647, got -7"},
		{localstore.Options{MaxEntries: 1 << 40}, "got 1099511627776"},
	} {
		if _, err := localstore.New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%+v): %v, want %q", c.o, err, c.want)
		}
	}
}

func TestReadableInItsLastMillisecond(t *testing.T) {
	v := localstore.NewValues[int](newStore(t, localstore.Options{MaxEntries: 10}))
	v.Set("k", 1, 0, 5000, 4000)
	if got, deadline, ok := v.Get("k", 5000); got != 1 || deadline != 5000 || !ok {
		t.Errorf("at 5000: %d, %d, %v", got, deadline, ok)
	}
	if got, deadline, ok := v.Get("k", 5001); got != 0 || deadline != 0 || ok {
		t.Errorf("at 5001: %d, %d, %v", got, deadline, ok)
	}
}

func TestSetInThePastDeletes(t *testing.T) {
	s := newStore(t, localstore.Options{MaxEntries: 10})
	v := localstore.NewValues[int](s)
	v.Set("k", 1, 0, expiry.None, 1000)
	if o := v.Set("k", 2, 0, 999, 1000); o != localstore.Expired {
		t.Errorf("outcome %v", o)
	}
	if _, _, ok := v.Get("k", 1000); ok || s.Len() != 0 {
		t.Errorf("still there: %v, %d", ok, s.Len())
	}
}

func TestTooLargeIsRefusedAndTheOldValueIsGone(t *testing.T) {
	s := newStore(t, localstore.Options{MaxBytes: 1000})
	v := localstore.NewValues[int](s)
	for _, cost := range []int64{1000, 1000 - localstore.Overhead - 1 + 1, 1<<63 - 1, -1} {
		v.Set("k", 1, 0, expiry.None, 0)
		if o := v.Set("k", 2, cost, expiry.None, 0); o != localstore.Refused {
			t.Errorf("cost %d: outcome %v", cost, o)
		}
		if _, _, ok := v.Get("k", 0); ok || s.Bytes() != 0 {
			t.Errorf("cost %d: still there: %v, %d", cost, ok, s.Bytes())
		}
	}
	if o := v.Set("k", 3, 1000-localstore.Overhead-1, expiry.None, 0); o != localstore.Stored || s.Bytes() != 1000 {
		t.Errorf("what just fits: %v, %d bytes", o, s.Bytes())
	}
	if got := s.Stats().Refused; got != 4 {
		t.Errorf("%d refused", got)
	}
}

// One entry may take the whole budget, also that of the other shards.
func TestALargeEntryEvictsFromEveryShard(t *testing.T) {
	effort.Alone(t)
	const budget = 64 << 20
	s := newStore(t, localstore.Options{MaxBytes: budget})
	small, large := localstore.NewValues[int](s), localstore.NewValues[string](s)
	for i := range 100_000 {
		small.Set(fmt.Sprint(i), i, 0, expiry.None, 0)
	}
	if o := large.Set("k", "v", budget-localstore.Overhead-1, expiry.None, 0); o != localstore.Stored {
		t.Fatalf("outcome %v", o)
	}
	if s.Len() != 1 || s.Bytes() != budget {
		t.Errorf("%d entries, %d bytes", s.Len(), s.Bytes())
	}
	if v, _, _ := large.Get("k", 0); v != "v" {
		t.Errorf("got %q", v)
	}
}

func TestBoundsHoldAtEveryStep(t *testing.T) {
	effort.Alone(t)
	for _, o := range []localstore.Options{
		{MaxEntries: 1}, {MaxEntries: 2}, {MaxEntries: 77},
		{MaxBytes: 3000}, {MaxBytes: 20_000, MaxEntries: 30}, {MaxBytes: 2 << 20},
	} {
		s := newStore(t, o)
		a, b := localstore.NewValues[int](s), localstore.NewValues[[]byte](s)
		r := rand.New(rand.NewPCG(1, 1))
		for i := range 50_000 {
			key := fmt.Sprint(r.IntN(20_000))
			if i%2 == 0 {
				a.Set(key, i, r.Int64N(400), expiry.None, 0)
			} else {
				b.Set(key, nil, r.Int64N(400), int64(i+r.IntN(1000)), int64(i))
			}
			if r.IntN(3) == 0 {
				a.Get(key, int64(i))
			}
			if o.MaxEntries > 0 && s.Len() > o.MaxEntries || o.MaxBytes > 0 && s.Bytes() > o.MaxBytes {
				t.Fatalf("%+v: %d entries, %d bytes", o, s.Len(), s.Bytes())
			}
		}
		if s.Len() == 0 || s.Stats().Evictions == 0 {
			t.Errorf("%+v: %d entries, %+v", o, s.Len(), s.Stats())
		}
		s.Clear("")
		if s.Len() != 0 || s.Bytes() != 0 {
			t.Errorf("%+v: after Clear %d entries, %d bytes", o, s.Len(), s.Bytes())
		}
	}
}

func TestWritesReap(t *testing.T) {
	s := newStore(t, localstore.Options{MaxEntries: 1 << 20})
	v := localstore.NewValues[int](s)
	for i := range 10_000 {
		v.Set(fmt.Sprint(i), i, 0, 2000, 1000)
	}
	if early, late := s.Dead(2000), s.Dead(2001); early != 0 || late != 10_000 {
		t.Errorf("dead: %d in the last millisecond, %d after it", early, late)
	}
	for now := int64(2001); now < 2050; now++ { // one key only: its shard must not be the only one that is swept
		v.Set("another", 1, 0, expiry.None, now)
	}
	if s.Len() != 1 || s.Stats().Expired != 10_000 {
		t.Errorf("%d entries are left, %+v", s.Len(), s.Stats())
	}
	if n := s.Dead(math.MaxInt64); n != 0 {
		t.Errorf("nothing has a deadline, but %d entries will be dead", n)
	}
}

func TestTheDeadMakeRoomForTheLiving(t *testing.T) {
	s := newStore(t, localstore.Options{MaxEntries: 100})
	v := localstore.NewValues[int](s)
	for i := range 100 {
		v.Set(fmt.Sprint(i), i, 0, int64(5000-i/50), 4998)
	}
	for i := range 50 {
		v.Set(fmt.Sprint("new", i), i, 0, expiry.None, 5000) // too early for another sweep
	}
	if got := s.Stats(); got.Evictions != 0 || got.Expired != 50 || s.Len() != 100 {
		t.Errorf("%+v, %d entries", got, s.Len())
	}
}

// A clock that went backwards does not stop the sweeps.
func TestSweepsAfterTheClockWentBack(t *testing.T) {
	s := newStore(t, localstore.Options{MaxEntries: 100})
	v := localstore.NewValues[int](s)
	v.Set("ends", 1, 0, 1000, 500)
	v.Set("another", 1, 0, expiry.None, 900_000)
	v.Set("ends", 1, 0, 1000, 500)
	for now := int64(990); now < 1020; now++ {
		v.Set("another", 1, 0, expiry.None, now)
	}
	if s.Len() != 1 {
		t.Errorf("%d entries", s.Len())
	}
}

func TestStats(t *testing.T) {
	s := newStore(t, localstore.Options{MaxEntries: 100})
	v := localstore.NewValues[int](s)
	v.Set("k", 1, 0, expiry.None, 0)
	for range 5 {
		v.Get("k", 0)
	}
	for range 3 {
		v.Get("absent", 0)
	}
	if got, want := s.Stats(), (localstore.Stats{Hits: 5, Misses: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestGetAllocatesNothing(t *testing.T) {
	s := newStore(t, localstore.Options{MaxEntries: 1 << 16})
	values, pointers := localstore.NewValues[[4]int64](s), localstore.NewValues[*int](s)
	key := strings.Repeat("k", 100)
	built := []byte(key)
	values.Set(key, [4]int64{1, 2, 3, 4}, 0, 2000, 1000)
	pointers.Set(key, new(int), 0, 2000, 1000)
	for name, get := range map[string]func() bool{
		"a value":        func() bool { v, _, ok := values.Get(key, 1500); return ok && v[3] == 4 },
		"a pointer":      func() bool { v, _, ok := pointers.Get(key, 1500); return ok && v != nil },
		"a built key":    func() bool { return values.At(built, 1500) != nil },
		"a miss":         func() bool { _, _, ok := values.Get("absent", 1500); return !ok },
		"a dead entry":   func() bool { _, _, ok := values.Get(key, 2500); return !ok },
		"a built absent": func() bool { built[0]++; at := values.At(built, 1500); built[0]--; return at == nil },
	} {
		if n := testing.AllocsPerRun(100, func() {
			if !get() {
				t.Error(name)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// A replacement is one allocation, the new entry.
func TestSetAllocatesOnce(t *testing.T) {
	v := localstore.NewValues[int](newStore(t, localstore.Options{MaxEntries: 1 << 16}))
	v.Set("k", 1, 0, 5000, 1000)
	if n := testing.AllocsPerRun(100, func() { v.Set("k", 2, 0, 5000, 1000) }); n != 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestConcurrent has readers, writers, deleters and the reaper meet in few keys. A value names its key and its writer's
// count, so that a reader can tell a torn or misplaced one, and time never goes backwards for one key and writer.
func TestConcurrent(t *testing.T) {
	type value struct {
		key    string
		writer int
		n      int
	}
	for _, o := range []localstore.Options{{MaxEntries: 50}, {MaxEntries: 8192}, {MaxBytes: 1 << 20}} {
		s := newStore(t, o)
		v, other := localstore.NewValues[value](s), localstore.NewValues[*value](s)
		var stop atomic.Bool
		var wg sync.WaitGroup
		var now atomic.Int64
		now.Store(1000)
		keys := make([]string, 300)
		for i := range keys {
			keys[i] = fmt.Sprint("key", i)
		}
		for w := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 1))
				for n := 1; !stop.Load(); n++ {
					k := keys[r.IntN(len(keys))]
					at := now.Load()
					switch r.IntN(20) {
					case 0:
						v.Set(k, value{}, 0, at-1, at) // over already: as a Delete of this view
					case 1:
						s.Delete(k)
					case 2:
						now.Add(1)
					case 3:
						s.Reap(at, 10)
					case 4:
						if r.IntN(100) == 0 {
							s.Clear("key1")
							v.Clear()
						}
					case 5, 6, 7:
						other.Set(k, &value{k, w, n}, r.Int64N(500), at+r.Int64N(10), at)
					default:
						v.Set(k, value{k, w, n}, r.Int64N(500), at+r.Int64N(10), at)
					}
				}
			})
		}
		for g := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 2))
				seen := map[string][4]int{}
				for !stop.Load() {
					k := keys[r.IntN(len(keys))]
					got, deadline, ok := v.Get(k, now.Load())
					if p, _, ok := other.Get(k, now.Load()); ok && p.key != k {
						t.Errorf("%q in place of %q", p.key, k)
					}
					if !ok {
						continue
					}
					last := seen[k]
					if got.key != k || deadline < 1000 || got.n < last[got.writer] {
						t.Errorf("%q: got %+v until %d, after %v", k, got, deadline, last)
						return
					}
					last[got.writer] = got.n
					seen[k] = last
				}
			})
		}
		timer := time.AfterFunc(time.Duration(effort.Times(20, 1000))*time.Millisecond, func() { stop.Store(true) })
		wg.Wait()
		timer.Stop()
		if o.MaxEntries > 0 && s.Len() > o.MaxEntries || o.MaxBytes > 0 && s.Bytes() > o.MaxBytes {
			t.Errorf("%+v: %d entries, %d bytes", o, s.Len(), s.Bytes())
		}
		s.Clear("")
		if s.Len() != 0 || s.Bytes() != 0 {
			t.Errorf("%+v: after Clear %d entries, %d bytes", o, s.Len(), s.Bytes())
		}
	}
}
