package localstore_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// note is a value that can be packed: its text is between its numbers.
type note struct {
	n    int64
	text string
	odd  bool
}

func noteOf(r *rand.Rand, n int) note {
	return note{int64(n), strings.Repeat(string(rune('a'+n%26)), r.IntN(150)), n%2 == 1}
}

// Whatever happens to a store, every living key has its value, its pages add up, and what a reader keeps stays as it was.
func TestPages(t *testing.T) {
	effort.Alone(t)
	for _, o := range []localstore.Options{{MaxEntries: 1 << 20}, {MaxEntries: 1500}, {MaxBytes: 300_000}} {
		seed := uint64(time.Now().UnixNano())
		t.Logf("%+v: seed %d", o, seed)
		r := rand.New(rand.NewPCG(seed, 0))
		s := newStore(t, o)
		s.PackFrom(200)
		notes, pointers := localstore.NewValues[note](s), localstore.NewValues[*note](s)
		want := map[string]note{}
		kept := map[string]string{}
		now := int64(1000)
		read := func(key string) {
			got, _, ok := notes.Get(key, now)
			if ok && got != want[key] {
				t.Fatalf("%s is %v, want %v", key, got, want[key])
			}
			if ok && len(kept) < 300 && r.IntN(20) == 0 {
				kept[got.text] = strings.Clone(got.text)
			}
		}
		for step := range effort.Times(30_000, 600_000) {
			key := fmt.Sprint("key", r.IntN(1<<r.IntN(12)))
			switch op := r.IntN(1000); {
			case op < 600:
				deadline := expiry.None
				if r.IntN(2) == 0 {
					deadline = now + r.Int64N(500)
				}
				v := noteOf(r, step)
				if notes.Set(key, v, int64(len(v.text)), deadline, now) == localstore.Stored {
					want[key] = v
				}
			case op < 650:
				pointers.Set(key, &note{n: 7}, 100, now+100, now)
			case op < 700:
				s.Delete(key)
				if _, _, ok := notes.Get(key, now); ok {
					t.Fatalf("%s is deleted and there", key)
				}
			case op < 720:
				now += r.Int64N(50)
			case op == 720:
				s.Reap(now, r.IntN(1000))
			case op == 721:
				s.Clear(key)
			default:
				read(key)
			}
			if step%1000 == 0 {
				if _, _, wrong := notes.Pages(); wrong != "" {
					t.Fatalf("step %d: %s", step, wrong)
				}
			}
		}
		for key := range want {
			read(key)
		}
		if known, packed, wrong := notes.Pages(); wrong != "" || packed < 100 || known == 0 {
			t.Errorf("%d pages, %d entries in them, %s", known, packed, wrong)
		}
		if known, packed, _ := pointers.Pages(); known != 0 || packed != 0 {
			t.Errorf("pointers are packed: %d pages, %d entries", known, packed)
		}
		s.Clear("")
		if known, packed, wrong := notes.Pages(); known != 0 || packed != 0 || wrong != "" {
			t.Errorf("an empty store has %d pages, %d entries in them, %s", known, packed, wrong)
		}
		runtime.GC()
		for text, before := range kept {
			if text != before {
				t.Errorf("a text that was read is %q now, and was %q", text, before)
			}
		}
		if len(kept) < 100 {
			t.Errorf("%d texts were kept", len(kept))
		}
	}
}

// A store packs from a number of entries on, those that came before with the others.
func TestPacksWhatCameBefore(t *testing.T) {
	s := newStore(t, localstore.Options{MaxEntries: 1 << 20})
	s.PackFrom(2000)
	v := localstore.NewValues[int](s)
	for i := range 1999 {
		v.Set(fmt.Sprint(i), i, 0, expiry.None, 0)
	}
	if known, _, _ := v.Pages(); known != 0 {
		t.Errorf("%d pages too early", known)
	}
	for i := range 10_000 {
		v.Set(fmt.Sprint("more", i), i, 0, expiry.None, 0)
	}
	if _, packed, wrong := v.Pages(); packed != 11_999 || wrong != "" {
		t.Errorf("%d of 11,999 entries are packed, %s", packed, wrong)
	}
	for i := range 1999 {
		if got, _, ok := v.Get(fmt.Sprint(i), 0); got != i || !ok {
			t.Fatalf("%d is %d, %v", i, got, ok)
		}
	}
}

// What a type looks like decides whether its values are packed, and what comes out is what went in.
func TestWhatIsPacked(t *testing.T) {
	type meta struct {
		at  int64
		day byte
	}
	type copied struct {
		value []byte
		meta
		names [2]int16
	}
	packs[[]byte](t, true, nil, []byte{}, []byte("bytes"), make([]byte, 171))
	packs[[]byte](t, false, make([]byte, 200), make([]byte, 70_000))
	packs(t, true, "", "text", strings.Repeat("x", 171))
	packs(t, false, strings.Repeat("x", 172))
	packs(t, true, 7, -1)
	packs(t, true, struct{}{})
	packs(t, true, [3]float64{1, 2, 3})
	packs(t, true, [1]string{"one"})
	packs(t, true, copied{}, copied{[]byte("v"), meta{1 << 40, 3}, [2]int16{-1, 5}}, copied{value: []byte{}})
	packs(t, false, [2]string{"a", "b"})
	packs(t, false, struct{ a, b []byte }{nil, []byte("b")})
	packs(t, false, [100]int64{5})
	packs[any](t, false, 1)
	packs[error](t, false, nil)
	packs[map[int]int](t, false, nil)
	packs(t, false, []int{1})
	packs(t, false, new(int))
}

func packs[V any](t *testing.T, want bool, values ...V) {
	t.Helper()
	for _, key := range []string{"", "a key", strings.Repeat("k", 21)} {
		for _, value := range values {
			s := newStore(t, localstore.Options{MaxEntries: 10})
			s.PackFrom(0)
			v := localstore.NewValues[V](s)
			v.Set(key, value, 0, 2000, 1000)
			got, deadline, ok := v.Get(key, 1000)
			if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", value) || deadline != 2000 || !ok {
				t.Errorf("%T: %#v came back as %#v, %d, %v", value, value, got, deadline, ok)
			}
			if at := v.At([]byte(key), 1000, nil); fmt.Sprintf("%#v", *at) != fmt.Sprintf("%#v", value) {
				t.Errorf("%T: %#v is there as %#v", value, value, *at)
			}
			if _, n, _ := v.Pages(); n == 1 != want && len(key) == 21 {
				t.Errorf("%T: %#v, %d packed", value, value, n)
			}
		}
	}
}

// A caller that appends to a slice writes into no other entry.
func TestAppendToWhatWasRead(t *testing.T) {
	s := newStore(t, localstore.Options{MaxEntries: 10})
	s.PackFrom(0)
	v := localstore.NewValues[[]byte](s)
	v.Set("a", []byte("first"), 0, expiry.None, 0)
	v.Set("b", []byte("second"), 0, expiry.None, 0)
	for _, key := range []string{"a", "b"} {
		got, _, _ := v.Get(key, 0)
		_ = append(got, "overwritten"...)
	}
	a, _, _ := v.Get("a", 0)
	b, _, _ := v.Get("b", 0)
	if !bytes.Equal(a, []byte("first")) || !bytes.Equal(b, []byte("second")) {
		t.Errorf("%q and %q", a, b)
	}
}
