package admission_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/admission"
)

func TestAPermitHolderTakesALoadOutOfTheQueue(t *testing.T) {
	for name, late := range map[string]bool{"before it queues": false, "while it queues": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, admission.Options{Limit: 1})
				p := enter(t, l)
				place := l.Place()
				if !late {
					place.Joined(time.Time{}, true)
				}
				w := queue(t.Context(), l, admission.Wish{Place: place}, func(p *admission.Permit) {
					if s := l.Stats(); s.InFlight != 2 {
						t.Errorf("%+v", s)
					}
					ok(p)
				})
				if late {
					place.Joined(time.Now().Add(time.Second), false)
					synctest.Wait()
					if w.err != errWaits {
						t.Errorf("for anybody: %v", w.err)
					}
					place.Joined(time.Time{}, true)
				}
				if synctest.Wait(); w.err != nil {
					t.Errorf("it did not enter: %v", w.err)
				}
				place.Joined(time.Time{}, true) // too late to matter
				ok(p)
				if s := l.Stats(); s.InFlight != 0 || s.Queued != 0 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A load whose first callers would leave too early is behind the others, until somebody joins who stays.
func TestALaterJoinerWaitsLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, held := busy(t)
		var order []string
		place := l.Place()
		place.Joined(time.Now().Add(time.Second), false)
		add := func(name string) func(p *admission.Permit) {
			return func(p *admission.Permit) { order = append(order, name); p.Done(admission.NoSample, time.Now()) }
		}
		queue(t.Context(), l, admission.Wish{Place: place}, add("joined"))
		queue(t.Context(), l, admission.Wish{}, func(p *admission.Permit) { held[0] = p })
		held[0].Done(admission.NoSample, time.Now()) // the first is too late by then, so the second enters
		synctest.Wait()
		queue(t.Context(), l, admission.Wish{Until: time.Now().Add(time.Second)}, add("late"))
		place.Joined(time.Now().Add(time.Hour), false)
		queue(t.Context(), l, admission.Wish{}, add("after"))
		for range 3 {
			held[0].Done(admission.NoSample, time.Now())
			synctest.Wait()
		}
		if len(order) != 3 || order[0] != "joined" || order[1] != "after" || order[2] != "late" {
			t.Errorf("order %q", order)
		}
	})
}

// In front of an origin that is too slow all callers may leave before a load ends.
func TestAbandonedLoadsThatTookLongAreTimeouts(t *testing.T) {
	for _, c := range []struct {
		took  time.Duration
		lower bool
	}{{time.Millisecond, false}, {2 * time.Second, true}} {
		p := admission.NewPolicy(4 * time.Second)
		before, now := p.Limit(), time.Duration(0)
		for range 100 {
			p.Done(now, now+c.took, admission.Abandoned, true)
			now += c.took
		}
		if got := p.Limit(); (got < before) != c.lower {
			t.Errorf("abandoned after %v: from %d to %d", c.took, before, got)
		}
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, admission.Options{Limit: 1})
		ctx := t.Context()
		p := enter(t, l)
		admission.Fill(l)
		if _, err := l.Enter(ctx, admission.Wish{}); err != admission.ErrOverloaded {
			t.Errorf("behind a full queue: %v", err)
		}
		ok(p)
	})
}
