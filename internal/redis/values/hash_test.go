package values

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// TestHashAgreesWithAMap plays random changes on a hash and on a plain map of fields, in every form and across the limits.
func TestHashAgreesWithAMap(t *testing.T) {
	effort.Alone(t)
	type want struct {
		value    string
		deadline int64
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, most := range []int{0, 8, 30, 1000} {
		lim := DefaultLimits
		lim.HashMaxListpackEntries, lim.HashMaxListpackValue = most, 300
		h, model, now := NewHash(), map[string]want{}, int64(1000)
		for step := range 20000 {
			field := fmt.Sprint("f", r.IntN(40))
			old, exists := model[field]
			switch r.IntN(10) {
			case 0, 1, 2:
				value, keep := strings.Repeat("v", r.IntN(10)*r.IntN(30)), r.IntN(3) == 0
				if added := h.Set([]byte(field), []byte(value), keep, lim); added == exists {
					t.Fatalf("step %d: Set says added %v", step, added)
				}
				if !keep {
					old.deadline = 0
				}
				model[field] = want{value, old.deadline}
			case 3:
				if h.Remove([]byte(field)) != exists {
					t.Fatalf("step %d: Remove(%s) is not %v", step, field, exists)
				}
				delete(model, field)
			case 4, 5:
				if exists {
					old.deadline = now + int64(r.IntN(500)) - 50
					if r.IntN(4) == 0 {
						old.deadline = expiry.None
					}
					h.SetDeadline([]byte(field), old.deadline)
					model[field] = old
				}
			case 6:
				now += int64(r.IntN(20))
				most := r.IntN(5)
				n := h.Expire(now, most, func(f []byte) {
					if d := model[string(f)].deadline; !expiry.Dead(d, now) {
						t.Fatalf("step %d: expired %s, which ends at %d, at %d", step, f, d, now)
					}
					delete(model, string(f))
				})
				if n < most && h.Dead(now) > 0 {
					t.Fatalf("step %d: %d of %d expired, and %d left", step, n, most, h.Dead(now))
				}
			case 7:
				if step%50 == 0 {
					h = h.Clone().(*HashValue)
				}
			default:
				value, deadline, ok := h.Get([]byte(field))
				if ok != exists || string(value) != old.value || deadline != old.deadline {
					t.Fatalf("step %d: Get(%s) is %q %d %v, want %v", step, field, value, deadline, ok, old)
				}
			}
			next, dead := expiry.None, 0
			for _, w := range model {
				if w.deadline != expiry.None && (next == expiry.None || w.deadline < next) {
					next = w.deadline
				}
				if expiry.Dead(w.deadline, now) {
					dead++
				}
			}
			if h.Len() != len(model) || h.NextDeadline() != next || h.Dead(now) != dead {
				t.Fatalf("step %d: %d fields, next %d, %d dead; want %d, %d, %d", step, h.Len(), h.NextDeadline(), h.Dead(now), len(model), next, dead)
			}
		}
		h.Each(func(field, value []byte, deadline int64) bool {
			if w := (want{string(value), deadline}); model[string(field)] != w {
				t.Errorf("%s is %v, want %v", field, w, model[string(field)])
			}
			delete(model, string(field))
			return true
		})
		if len(model) > 0 {
			t.Errorf("not met: %v", model)
		}
	}
}

func TestSampleGivesDifferentFields(t *testing.T) {
	lim := DefaultLimits
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 5, 100, 200, 2000} {
		h := NewHash()
		for i := range n {
			h.Set(fmt.Append(nil, i), nil, false, lim)
		}
		for _, count := range []int{1, 3, n - 1, n, n + 1} {
			var got []string
			h.Sample(count, r.Uint64, func(field, _ []byte) { got = append(got, string(field)) })
			slices.Sort(got)
			if len(slices.Compact(got)) != min(count, n) {
				t.Errorf("%d of %d: %d different", count, n, len(slices.Compact(got)))
			}
		}
	}
}
