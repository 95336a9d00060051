package admission_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/admission"
)

func newLimiter(t *testing.T, o admission.Options) *admission.Limiter {
	t.Helper()
	l, err := admission.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func enter(t *testing.T, l *admission.Limiter) *admission.Permit {
	t.Helper()
	p, err := l.Enter(t.Context(), admission.Wish{})
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

func ok(p *admission.Permit) { p.Done(admission.OK, time.Now()) }

// waiting is the end of one Enter.
type waiting struct{ err error }

// queue lets a load with this wish wait, and returns when it does.
func queue(ctx context.Context, l *admission.Limiter, wish admission.Wish, entered func(*admission.Permit)) *waiting {
	w := &waiting{err: errWaits}
	go func() {
		p, err := l.Enter(ctx, wish)
		if w.err = err; err == nil {
			entered(&p)
		}
	}()
	synctest.Wait()
	return w
}

var errWaits = errors.New("it still waits")

func TestFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, admission.Options{Limit: 1})
		p := enter(t, l)
		var order []int
		for i := range 5 {
			queue(t.Context(), l, admission.Wish{}, func(p *admission.Permit) { order = append(order, i); ok(p) })
		}
		if s := l.Stats(); s.InFlight != 1 || s.Queued != 5 || s.Entered != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Second)
		ok(p)
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("order %v", order)
		}
		if s := l.Stats(); s != (admission.Stats{Limit: 1, Entered: 6, Waited: 5 * time.Second}) {
			t.Errorf("%+v", s)
		}
	})
}

// busy is a limiter that has learned that a load takes a second, and all of whose permits are held.
func busy(t *testing.T) (l *admission.Limiter, held []*admission.Permit) {
	t.Helper()
	l = newLimiter(t, admission.Options{Timeout: time.Minute})
	for range 100 {
		p := enter(t, l)
		time.Sleep(time.Second)
		ok(p)
	}
	for range l.Stats().Limit {
		held = append(held, enter(t, l))
	}
	return l, held
}

func TestCallersThatCanStillBeAnsweredGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, held := busy(t)
		var order []string
		for _, w := range []struct {
			name string
			left time.Duration // 0: not known
		}{{"late", 2 * time.Second}, {"early", 4 * time.Second}, {"late too", 2 * time.Second}, {"patient", 0}} {
			wish := admission.Wish{}
			if w.left > 0 {
				wish.Until = time.Now().Add(w.left)
			}
			queue(t.Context(), l, wish, func(p *admission.Permit) { order = append(order, w.name); p.Done(admission.NoSample, time.Now()) })
		}
		time.Sleep(time.Second)
		for range 4 { // one free place
			held[0].Done(admission.NoSample, time.Now())
			synctest.Wait()
		}
		if want := []string{"early", "patient", "late", "late too"}; !slices.Equal(order, want) {
			t.Errorf("order %q, want %q", order, want)
		}
	})
}

func TestLeavingTheQueue(t *testing.T) {
	errGone := errors.New("the client has gone")
	for name, c := range map[string]struct {
		leave func(cancel context.CancelCauseFunc, abandon func(), l *admission.Limiter)
		want  error
	}{
		"its context ends": {func(cancel context.CancelCauseFunc, _ func(), _ *admission.Limiter) { cancel(errGone) }, errGone},
		"nobody wants it":  {func(_ context.CancelCauseFunc, abandon func(), _ *admission.Limiter) { abandon() }, admission.ErrAbandoned},
		"patience ends":    {func(context.CancelCauseFunc, func(), *admission.Limiter) { time.Sleep(time.Minute) }, admission.ErrOverloaded},
		"Close":            {func(_ context.CancelCauseFunc, _ func(), l *admission.Limiter) { l.Close(); l.Close() }, admission.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, admission.Options{Limit: 1})
				p := enter(t, l)
				ctx, cancel := context.WithCancelCause(t.Context())
				abandoned := make(chan struct{})
				never := func(*admission.Permit) { t.Error("it got a permit") }
				first := queue(ctx, l, admission.Wish{Patience: time.Minute, Abandoned: abandoned}, never)
				second := queue(t.Context(), l, admission.Wish{}, ok)
				c.leave(cancel, func() { close(abandoned) }, l)
				synctest.Wait()
				if first.err != c.want {
					t.Errorf("left with %v, want %v", first.err, c.want)
				}
				closed := c.want == admission.ErrClosed
				if want := errWaits; !closed && second.err != want {
					t.Errorf("the other: %v", second.err)
				}
				ok(p)
				synctest.Wait()
				if !closed && second.err != nil || closed && second.err != admission.ErrClosed {
					t.Errorf("the other, when the permit is back: %v", second.err)
				}
				if _, err := l.Enter(t.Context(), admission.Wish{}); closed != (err == admission.ErrClosed) {
					t.Errorf("who comes later: %v", err)
				}
				cancel(nil)
			})
		})
	}
}

func TestEndedContextsDoNotEnter(t *testing.T) {
	l := newLimiter(t, admission.Options{Limit: -1})
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := l.Enter(ctx, admission.Wish{}); err != why {
		t.Errorf("%v", err)
	}
	if s := l.Stats(); s.Entered != 0 || s.Limit != -1 {
		t.Errorf("%+v", s)
	}
}

func TestTryDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, admission.Options{Limit: 1})
		p, got := l.Try(t.Context())
		if !got {
			t.Fatal("a free permit is refused")
		}
		if _, got := l.Try(t.Context()); got {
			t.Error("two permits of one")
		}
		var second *admission.Permit
		queue(t.Context(), l, admission.Wish{}, func(p *admission.Permit) { second = p })
		ok(&p)
		synctest.Wait()
		if _, got := l.Try(t.Context()); got {
			t.Error("it overtook the queue")
		}
		ok(second)
		if s := l.Stats(); s.InFlight != 0 || s.Refused != 2 {
			t.Errorf("%+v", s)
		}
		l.Close()
		if _, got := l.Try(t.Context()); got {
			t.Error("it entered what is closed")
		}
	})
}

func TestAPermitComesBackOnce(t *testing.T) {
	for name, end := range map[string]func(p *admission.Permit){
		"Done":         ok,
		"Done twice":   func(p *admission.Permit) { ok(p); ok(p) },
		"only Drop":    func(*admission.Permit) {},
		"a panic":      func(*admission.Permit) { panic("of a loader") },
		"Goexit":       func(*admission.Permit) { runtime.Goexit() },
		"while inside": func(p *admission.Permit) { p.Inside(t.Context()); ok(p) },
	} {
		l := newLimiter(t, admission.Options{Limit: 2})
		other := enter(t, l)
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			p, _ := l.Enter(t.Context(), admission.Wish{})
			defer p.Drop()
			end(&p)
		}()
		<-done
		if s := l.Stats(); s.InFlight != 1 || s.Entered != 2 {
			t.Errorf("%s: %+v", name, s)
		}
		ok(other)
	}
}

func TestALoadWithinALoadTakesNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, other := newLimiter(t, admission.Options{Limit: 1}), newLimiter(t, admission.Options{Limit: 1})
		p := enter(t, l)
		inside := p.Inside(t.Context())
		nested, err := l.Enter(inside, admission.Wish{})
		if err != nil {
			t.Fatal(err)
		}
		if _, got := l.Try(inside); !got {
			t.Error("Try waits for the load it is in")
		}
		if deeper := nested.Inside(inside); deeper != inside {
			t.Error("a nested permit made a context of its own")
		}
		ok(&nested)
		foreign, err := other.Enter(inside, admission.Wish{})
		if s := other.Stats(); err != nil || s.InFlight != 1 {
			t.Errorf("in another limiter: %v, %+v", err, s)
		}
		ok(&foreign)
		if s := l.Stats(); s.InFlight != 1 || s.Entered != 1 {
			t.Errorf("%+v", s)
		}
		ok(p)
		held := enter(t, l)
		// A call that the load left behind, with its context, waits like all others.
		if w := queue(inside, l, admission.Wish{}, ok); w.err != errWaits {
			t.Errorf("behind a load that has ended: %v", w.err)
		}
		ok(held)
	})
}

// A limit that binds grows, also if the queue is empty again when the epoch ends.
func TestCallersThatWaitedLetTheLimitGrow(t *testing.T) {
	for name, want := range map[string]func(ctx context.Context, l *admission.Limiter){
		"Enter": func(ctx context.Context, l *admission.Limiter) {
			queue(ctx, l, admission.Wish{}, func(p *admission.Permit) { p.Done(admission.NoSample, time.Now()) })
		},
		"Try": func(ctx context.Context, l *admission.Limiter) { l.Try(ctx) },
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, admission.Options{Timeout: time.Second})
			before := l.Stats().Limit
			var held []*admission.Permit
			for range before {
				held = append(held, enter(t, l))
			}
			want(t.Context(), l)
			time.Sleep(time.Millisecond)
			for _, p := range held {
				ok(p)
				synctest.Wait()
			}
			if got := l.Stats().Limit; got != 2*before {
				t.Errorf("%s: from %d to %d", name, before, got)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []admission.Options{{}, {Timeout: -1}, {Limit: 1, Timeout: -1}} {
		if _, err := admission.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// Several caches on one limiter, with all that can happen to a load: the limit holds, and every permit comes back.
func TestSharedByMany(t *testing.T) {
	l := newLimiter(t, admission.Options{Limit: 7})
	var inFlight, most, loads atomic.Int64
	var all sync.WaitGroup
	for g := range uint64(16) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(g, 1))
			for range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(200))*time.Microsecond)
				wish := admission.Wish{}
				if r.IntN(2) == 0 {
					wish.Patience = time.Duration(1+r.IntN(100)) * time.Microsecond
				}
				p, err := l.Enter(ctx, wish)
				if err == nil {
					loads.Add(1)
					n := inFlight.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					runtime.Gosched()
					inFlight.Add(-1)
					p.Done(admission.Outcome(r.IntN(5)), time.Now())
				}
				cancel()
			}
		})
	}
	all.Wait()
	if s := l.Stats(); s.InFlight != 0 || s.Queued != 0 || most.Load() > 7 || loads.Load() == 0 {
		t.Errorf("%+v, %d at a time, %d loads", s, most.Load(), loads.Load())
	}
}

func TestAFreePermitCostsNoAllocation(t *testing.T) {
	for _, o := range []admission.Options{{Timeout: time.Second}, {Limit: 4}, {Limit: -1}} {
		l, ctx := newLimiter(t, o), t.Context()
		if n := testing.AllocsPerRun(1000, func() {
			p, err := l.Enter(ctx, admission.Wish{})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Drop()
			p.Done(admission.OK, time.Now())
		}); n != 0 {
			t.Errorf("%+v: %v allocations", o, n)
		}
	}
}
