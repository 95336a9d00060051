package values

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// TestListAgreesWithASlice plays random changes on a list and on a slice, with chunks of every size.
func TestListAgreesWithASlice(t *testing.T) {
	effort.Alone(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, fill := range []int{-2, -1, 1, 3, 100} {
		lim := DefaultLimits
		lim.ListMaxListpackSize = fill
		l, model := NewList(), []string{}
		for step := range 20000 {
			b := fmt.Sprint(r.IntN(20))
			switch r.IntN(40) {
			case 0:
				b = strings.Repeat("x", r.IntN(10000))
			case 1, 2:
				b = strings.Repeat("y", 120+r.IntN(20))
			}
			n := len(model)
			switch op := r.IntN(16); {
			case op < 3:
				l.Grow([][]byte{[]byte(b)}, lim)
				l.PushFront([]byte(b), lim)
				model = slices.Insert(model, 0, b)
			case op < 6:
				l.Grow([][]byte{[]byte(b)}, lim)
				l.PushBack([]byte(b), lim)
				model = append(model, b)
			case op == 6 && n > 0:
				if got := string(l.PopFront()); got != model[0] {
					t.Fatalf("step %d: popped %.20q, want %.20q", step, got, model[0])
				}
				model = model[1:]
			case op == 7 && n > 0:
				if got := string(l.PopBack()); got != model[n-1] {
					t.Fatalf("step %d: popped %.20q, want %.20q", step, got, model[n-1])
				}
				model = model[:n-1]
			case op == 8 && n > 0:
				i := r.IntN(n)
				l.Grow([][]byte{[]byte(b)}, lim)
				l.Set(i, []byte(b), lim)
				l.Shrink(lim)
				model[i] = b
			case op == 9 || op == 10:
				after := r.IntN(2) == 0
				pivot := fmt.Sprint(r.IntN(20))
				l.Grow([][]byte{[]byte(b)}, lim)
				i := slices.Index(model, pivot)
				if l.Insert([]byte(pivot), []byte(b), after, lim) != (i >= 0) {
					t.Fatalf("step %d: Insert at %d", step, i)
				}
				if i >= 0 {
					if after {
						i++
					}
					model = slices.Insert(model, i, b)
				}
			case op == 11:
				count := r.IntN(5) - 2
				got, want := l.Remove([]byte(b), count), 0
				model, want = without(model, b, count)
				if got != want {
					t.Fatalf("step %d: removed %d of %q, want %d", step, got, b, want)
				}
				l.Shrink(lim)
			case op == 12 && n > 200:
				front := r.IntN(n / 2)
				back := r.IntN(n / 2)
				l.Trim(front, back)
				l.Shrink(lim)
				model = model[front : n-back]
			case op == 13 && n > 0:
				i := r.IntN(n)
				if got := string(l.At(i)); got != model[i] {
					t.Fatalf("step %d: element %d is %.20q, want %.20q", step, i, got, model[i])
				}
			case op == 14 && step%100 == 0:
				l = l.Clone().(*ListValue)
			}
			if l.Len() != len(model) {
				t.Fatalf("step %d: %d elements, want %d", step, l.Len(), len(model))
			}
			if step%200 == 0 {
				compareList(t, l, model)
			}
		}
	}
}

// compareList walks a list in both directions, and checks its chunks' bookkeeping.
func compareList(t *testing.T, l *ListValue, model []string) {
	t.Helper()
	for from := range min(3, len(model)) {
		i := from
		l.EachFrom(from, func(b []byte) bool {
			if string(b) != model[i] {
				t.Fatalf("element %d is %.20q, want %.20q", i, b, model[i])
			}
			i++
			return true
		})
		if i != len(model) {
			t.Fatalf("met %d of %d", i, len(model))
		}
	}
	i := len(model) - 1
	l.EachBack(i, func(b []byte) bool {
		if string(b) != model[i] {
			t.Fatalf("element %d is %.20q, want %.20q", i, b, model[i])
		}
		i--
		return true
	})
	for c := l.head; c != nil; c = c.next {
		n, size := 0, emptySize
		for at := c.from; at < c.to; n++ {
			e := c.element(at)
			size += packedSize(c.bytes(e))
			at = e.end
		}
		if n != c.n || size != c.size || n == 0 {
			t.Fatalf("a chunk of %d elements and %d bytes says %d and %d", n, size, c.n, c.size)
		}
	}
}

// without is LREM on a slice.
func without(model []string, b string, count int) (rest []string, removed int) {
	rest = slices.Clone(model)
	for count == 0 || removed < max(count, -count) {
		i := slices.Index(rest, b)
		if count < 0 {
			i = -1
			for j := range rest {
				if rest[j] == b {
					i = j
				}
			}
		}
		if i < 0 {
			break
		}
		rest = slices.Delete(rest, i, i+1)
		removed++
	}
	return rest, removed
}

func TestALongListIsCompact(t *testing.T) {
	for name, push := range map[string]func(*ListValue, []byte, Limits){"back": (*ListValue).PushBack, "front": (*ListValue).PushFront} {
		l := NewList()
		b, payload := []byte("element:00000000"), 0
		for range 100000 {
			l.Grow([][]byte{b}, DefaultLimits)
			push(l, b, DefaultLimits)
			payload += len(b)
		}
		if got := float64(l.Size()) / float64(payload); got > 1.3 {
			t.Errorf("%s: %.2f bytes for a byte of payload", name, got)
		}
	}
}

// A queue must not grow as it moves.
func TestAQueueKeepsItsSize(t *testing.T) {
	l := NewList()
	b := []byte("job")
	for range 100 {
		l.PushBack(b, DefaultLimits)
	}
	for range 100000 {
		l.PushBack(b, DefaultLimits)
		l.PopFront()
	}
	if size := l.Size(); size > 4096 {
		t.Errorf("a queue of 100 elements takes %d bytes", size)
	}
}
