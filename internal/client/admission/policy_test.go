package admission

import (
	"math"
	"testing"
	"time"
)

// history feeds a policy one load after the other.
type history struct {
	*Policy
	now time.Duration
}

// epoch lets as many loads end as make an epoch, at a time, and returns the limit after it.
func (h *history) epoch(how Outcome, took time.Duration, waits bool) int {
	begun := h.now
	h.now += took
	if waits {
		h.Waits()
	}
	for range int(math.Ceil(min(minEpoch, h.limit))) {
		h.Done(begun, h.now, how, false)
	}
	return h.Limit()
}

func newHistory() *history {
	h := &history{Policy: NewPolicy(2 * time.Second)}
	for range 8 {
		h.epoch(OK, 10*time.Millisecond, true)
	}
	return h
}

func TestTheLimitGrowsOnlyIfItBinds(t *testing.T) {
	h := newHistory()
	before := h.Limit()
	if got := h.epoch(OK, 10*time.Millisecond, false); got != before {
		t.Errorf("from %d to %d, and nobody waited", before, got)
	}
	if got := h.epoch(OK, 10*time.Millisecond, true); got != 2*before {
		t.Errorf("from %d to %d, want twice as many", before, got)
	}
	h.limit = 5
	if got := h.epoch(OK, 20*time.Millisecond, true); got != 5 || h.limit != 5.5 {
		t.Errorf("crowded: from 5 to %v, want a tenth more", h.limit)
	}
}

func TestASaturatedOriginIsGivenItsRateTimesTheDelay(t *testing.T) {
	for name, c := range map[string]struct {
		wanted, delay time.Duration
	}{
		"eight times what is usual":    {0, 80 * time.Millisecond},
		"a third of what callers wait": {150 * time.Millisecond, 50 * time.Millisecond},
		"at least twice what is usual": {10 * time.Millisecond, 20 * time.Millisecond},
	} {
		h := newHistory()
		if c.wanted > 0 {
			h.Wanted(c.wanted)
		}
		took := 100 * time.Millisecond
		rate := minEpoch / took.Seconds()
		if got, want := h.epoch(OK, took, true), int(rate*c.delay.Seconds()+1); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestTimeoutsCloseTheDoorAllButOne(t *testing.T) {
	h := newHistory()
	if got := h.epoch(TimedOut, 2*time.Second, true); got != 1 {
		t.Errorf("%d", got)
	}
}

func TestLoadsOfAnEarlierLimitDoNotEndAnEpoch(t *testing.T) {
	h := newHistory()
	before := h.Limit()
	h.Waits()
	for range 3 * before {
		h.Done(h.now-2*time.Second, h.now, TimedOut, true)
	}
	if got := h.Limit(); got != before {
		t.Errorf("from %d to %d", before, got)
	}
}

func TestATimeWithoutLoadsIsNotSlowness(t *testing.T) {
	h := newHistory()
	h.now += time.Hour
	if got := h.epoch(OK, 100*time.Millisecond, true); got != 7 { // 80 a second for 80 ms, and one
		t.Errorf("%d, want 7: the rate of an hour leaves one", got)
	}
}

func TestAnOutcomeWithoutASampleChangesNothing(t *testing.T) {
	h := newHistory()
	before := *h.Policy
	h.epoch(NoSample, time.Second, false)
	if *h.Policy != before {
		t.Errorf("%+v, before %+v", *h.Policy, before)
	}
}

func TestErrorsCutUntilThatDoesNotHelp(t *testing.T) {
	h := newHistory()
	before := h.Limit()
	if got := h.epoch(Failed, time.Millisecond, true); got >= before {
		t.Errorf("from %d to %d", before, got)
	}
	for range 3 {
		h.epoch(Failed, time.Millisecond, true)
	}
	if got := h.Limit(); got < before {
		t.Errorf("%d after cuts that changed nothing, want %d", got, before)
	}
	if got := h.epoch(Failed, time.Millisecond, true); got < before {
		t.Errorf("%d: it is cut again", got)
	}
	h.limit = 10
	if h.epoch(OK, 10*time.Millisecond, true); h.limit != 10.7 {
		t.Errorf("from 10 to %v, want careful growth", h.limit)
	}
	for h.usual = 1; h.errors.tolerated > allowed && h.now < time.Hour; { // minutes without errors
		h.epoch(OK, time.Second, false)
	}
	if h.now > 5*time.Minute {
		t.Errorf("errors are tolerated for %v", h.now)
	}
	if got := h.epoch(Failed, time.Millisecond, true); got >= 10 {
		t.Errorf("from 10 to %d: errors are still tolerated", got)
	}
}

func TestTheUsualTimeIsForgottenSlowly(t *testing.T) {
	h := newHistory()
	before := h.usual
	for begun := h.now; h.now < begun+3*time.Minute+30*time.Second; {
		h.epoch(OK, 30*time.Millisecond, false)
	}
	if got := h.usual / before; got < 1.8 || got > 2.2 {
		t.Errorf("%.2f times as much after three and a half minutes, want twice", got)
	}
	for range 100 {
		h.epoch(OK, 5*time.Millisecond, false)
	}
	if h.usual > .0051 {
		t.Errorf("%.4f, want what it is now", h.usual)
	}
}

func TestAFewFastLoadsAreNotUsual(t *testing.T) {
	h := newHistory()
	for range 20 {
		h.epoch(OK, 10*time.Millisecond, false)
	}
	if h.epoch(OK, time.Millisecond, false); h.usual < .009 {
		t.Errorf("%.4f after eight fast loads", h.usual)
	}
}

func TestSlownessThatCutsDoNotChangeIsLearned(t *testing.T) {
	for _, limit := range []float64{100, 1} { // from one, nothing can be cut
		h := newHistory()
		h.limit = limit
		begun := h.now
		for i := 0; h.usual < .15 && h.now < begun+time.Minute; i++ {
			if i%6 == 5 {
				h.epoch(OK, 70*time.Millisecond, true) // by chance: that proves nothing
				continue
			}
			h.epoch(OK, 220*time.Millisecond, true)
		}
		if took := h.now - begun; took < 4*time.Second || took > 6*time.Second {
			t.Errorf("from %v: learned after %v, want two timeouts", limit, took)
		}
		if h.epoch(OK, 200*time.Millisecond, true) < 2 {
			t.Errorf("from %v: it does not grow again", limit)
		}
	}
}

func TestSlownessThatCutsChangeIsNotLearned(t *testing.T) {
	h := newHistory()
	h.limit = 100
	h.epoch(OK, 400*time.Millisecond, true)
	for range 60 {
		h.epoch(OK, 100*time.Millisecond, true)
	}
	if h.usual > .02 {
		t.Errorf("%.3f is usual", h.usual)
	}
}

func TestTheWorstBeforeACutIsWhatItIsComparedWith(t *testing.T) {
	h := newHistory()
	h.limit = 12
	h.epoch(OK, 82*time.Millisecond, true) // just too slow: the queue in the origin still grows
	h.epoch(OK, 300*time.Millisecond, true)
	for begun := h.now; h.now < begun+5*time.Second; {
		h.epoch(OK, 200*time.Millisecond, true)
	}
	if h.usual > .1 {
		t.Errorf("%.3f is usual, and cuts made it a third less", h.usual)
	}
}

func TestALimiterBelowOthersComesUpToThem(t *testing.T) {
	h := newHistory()
	begun := h.now
	for h.delay() < .12 && h.now < begun+time.Minute {
		h.epoch(OK, 121*time.Millisecond, true) // the queue of others
	}
	if took := h.now - begun; took < 5*time.Second || took > 30*time.Second {
		t.Errorf("after %v", took)
	}
}

// A limit that was too high a moment ago is not tried again at once: beyond half of it the limit rises step by step, for a minute.
func TestGrowthIsCarefulAfterACollapse(t *testing.T) {
	h := newHistory()
	h.limit = 64
	h.epoch(TimedOut, 2*time.Second, true)
	h.limit = 8
	if got := h.epoch(OK, 10*time.Millisecond, true); got != 16 {
		t.Errorf("far below: from 8 to %d, want twice as many", got)
	}
	if before := h.limit; h.epoch(OK, 10*time.Millisecond, true) != int(1.1*before) {
		t.Errorf("beyond half: from %v to %v, want a tenth more", before, h.limit)
	}
	for range 40 {
		h.epoch(OK, 2*time.Second, false) // nobody waits
	}
	if before := h.limit; h.epoch(OK, 10*time.Millisecond, true) != int(2*before) {
		t.Errorf("much later: from %v to %v, want twice as many", before, h.limit)
	}
}
