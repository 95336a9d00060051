package nodes

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// An alarm stays armed for the limit before: it must neither end the next one early nor forget it.
func TestEveryLimitEndsAtItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const after = 100 * time.Millisecond
		ls := limits{}
		for _, pause := range []time.Duration{0, time.Millisecond, 99 * time.Millisecond, 100 * time.Millisecond, time.Hour} {
			ls.end(ls.begin(t.Context(), time.Now(), after)) // arms the alarm
			time.Sleep(pause)
			begun := time.Now()
			l := ls.begin(t.Context(), begun, after)
			if at, ok := l.Deadline(); !ok || at.Sub(begun) != after {
				t.Errorf("after a pause of %v: the deadline is %v away", pause, at.Sub(begun))
			}
			<-l.Done()
			if took := time.Since(begun); took != after || !errors.Is(l.Err(), context.DeadlineExceeded) {
				t.Errorf("after a pause of %v: ended after %v with %v", pause, took, l.Err())
			}
			ls.end(l)
		}
	})
}

// The second call of Done returns a channel that closes when the caller has gone, and so does a first call after that.
func TestAWaiterLearnsThatItsCallerHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := limits{}
		ctx, cancel := context.WithCancelCause(t.Context())
		begun := time.Now()
		waits, asksLate := ls.begin(ctx, begun, time.Second), ls.begin(ctx, begun, time.Second)
		waits.Done()
		time.AfterFunc(time.Millisecond, func() { cancel(errors.New("gone")) })
		<-waits.Done()
		if took := time.Since(begun); took != time.Millisecond || !errors.Is(waits.Err(), context.Canceled) {
			t.Errorf("ended after %v with %v", took, waits.Err())
		}
		select {
		case <-asksLate.Done():
		default:
			t.Error("the caller had gone before")
		}
		ls.end(waits)
		ls.end(asksLate)
		ls.begin(ctx, begun, time.Second).Done() // no goroutine waits for it: the bubble ends
	})
}

// In a server of requests, a read always has a caller that can leave: this is what that costs.
func TestWhatALimitAllocates(t *testing.T) {
	if effort.Race {
		t.Skip("under the race detector pools drop things by chance")
	}
	ls, now := limits{}, time.Now()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if n := testing.AllocsPerRun(100, func() {
		l := ls.begin(ctx, now, time.Hour)
		l.Done()
		l.Err()
		ls.end(l)
	}); n > 2 {
		t.Errorf("%v allocations", n)
	}
}

func TestALimitEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := limits{}
		ctx, cancel := context.WithCancel(t.Context())
		l := ls.begin(ctx, time.Now(), time.Second)
		cancel()
		<-l.Done()
		if !errors.Is(l.Err(), context.Canceled) {
			t.Errorf("ended with %v", l.Err())
		}
		ls.end(l)
		if l := ls.begin(t.Context(), time.Now(), time.Second); l.Err() != nil {
			t.Errorf("the next limit begins with %v", l.Err())
		} else {
			ls.end(l)
			if !errors.Is(l.Err(), context.Canceled) {
				t.Errorf("a limit that was given back says %v", l.Err())
			}
		}
	})
}

func TestALimitOfALaterUseKeepsItsCallersEarlierDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := limits{}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		begun := time.Now()
		l := ls.begin(ctx, begun, time.Second)
		defer ls.end(l)
		l.Done() // only the second call waits
		<-l.Done()
		if took := time.Since(begun); took != 10*time.Millisecond || !errors.Is(l.Err(), context.DeadlineExceeded) {
			t.Errorf("ended after %v with %v", took, l.Err())
		}
	})
}

// The time that a part's commands take is subtracted from the whole budget.
func TestAnAllowanceOfAnAllowance(t *testing.T) {
	whole := Within(t.Context(), 100*time.Millisecond)
	part := Within(whole, time.Second)
	part.spend(60 * time.Millisecond)
	if whole.Left() != 40*time.Millisecond || part.Left() != 40*time.Millisecond {
		t.Errorf("%v of the whole and %v of the part are left", whole.Left(), part.Left())
	}
	if small := Within(whole, 10*time.Millisecond); small.Left() != 10*time.Millisecond {
		t.Errorf("%v of the small part are left", small.Left())
	}
}
