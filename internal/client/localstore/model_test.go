package localstore_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/mayflycache/mayfly/internal/expiry"
)

// naive is the specification of a store that never evicts: a map that is asked what is dead.
type naive map[string]struct {
	value    int
	deadline int64
}

// TestModel drives random operations against the map. One view holds ints, the other strings, under the same keys.
func TestModel(t *testing.T) {
	for _, o := range []localstore.Options{{MaxEntries: 1 << 20}, {MaxBytes: 1 << 30}, {MaxEntries: 1 << 12}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			s := newStore(t, o)
			ints, texts := localstore.NewValues[int](s), localstore.NewValues[string](s)
			mInts, mTexts := naive{}, naive{}
			now := int64(1_000_000)
			for step := range 40_000 {
				key := fmt.Sprintf("%c:%d", 'a'+r.IntN(3), r.IntN(500))
				deadline := expiry.None
				if r.IntN(3) > 0 {
					deadline = now + r.Int64N(2000) - 100
				}
				switch op := r.IntN(100); {
				case op < 20:
					ints.Set(key, step, r.Int64N(100), deadline, now)
					set(mInts, key, step, deadline, now)
				case op < 40:
					texts.Set(key, fmt.Sprint(step), r.Int64N(100), deadline, now)
					set(mTexts, key, step, deadline, now)
				case op < 60:
					v, d, ok := ints.Get(key, now)
					check(t, step, mInts, key, now, v, d, ok)
				case op < 80:
					v, d, ok := texts.Get(key, now)
					n := 0
					fmt.Sscan(v, &n)
					check(t, step, mTexts, key, now, n, d, ok)
				case op < 85:
					ints.Set(key, 0, 0, now-1, now) // over already: as a Delete of this view
					delete(mInts, key)
				case op < 90:
					s.Delete(key)
					delete(mInts, key)
					delete(mTexts, key)
				case op < 98:
					now += r.Int64N(20)
				case op == 98:
					s.Reap(now, r.IntN(100))
				case r.IntN(30) == 0:
					prefix := string(rune('a' + r.IntN(3)))
					s.Clear(prefix)
					for _, m := range []naive{mInts, mTexts} {
						for k := range m {
							if k[:1] == prefix {
								delete(m, k)
							}
						}
					}
				case r.IntN(30) == 0:
					texts.Clear()
					clear(mTexts)
				}
			}
			s.Reap(now, 1<<30)
			alive := 0
			for _, m := range []naive{mInts, mTexts} {
				for _, e := range m {
					if !expiry.Dead(e.deadline, now) {
						alive++
					}
				}
			}
			if s.Len() != alive {
				t.Errorf("%d entries are held, %d are alive", s.Len(), alive)
			}
			s.Clear("")
			if s.Len() != 0 || s.Bytes() != 0 {
				t.Errorf("an empty store holds %d entries, %d bytes", s.Len(), s.Bytes())
			}
			if n := s.Dead(math.MaxInt64); n != 0 {
				t.Errorf("%d entries of an empty store will be dead", n)
			}
		})
	}
}

func set(m naive, key string, value int, deadline, now int64) {
	if expiry.Dead(deadline, now) {
		delete(m, key)
		return
	}
	m[key] = struct {
		value    int
		deadline int64
	}{value, deadline}
}

func check(t *testing.T, step int, m naive, key string, now int64, value int, deadline int64, ok bool) {
	t.Helper()
	want, there := m[key]
	there = there && !expiry.Dead(want.deadline, now)
	if ok != there || ok && (value != want.value || deadline != want.deadline) {
		t.Fatalf("step %d: %q at %d is %d until %d, %v; want %+v, %v", step, key, now, value, deadline, ok, want, there)
	}
}

func newStore(t testing.TB, o localstore.Options) *localstore.Store {
	t.Helper()
	s, err := localstore.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
