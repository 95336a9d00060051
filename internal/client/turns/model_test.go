package turns

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

var seed = flag.Uint64("seed", 0, "of the model; zero draws one")

// A model world: a server with a version that grows, two lines that share one gate, callers who come and leave at any time, trips that
// take their time, hang, fail, panic and exit, and breakers that open. Whatever happens:
//
//   - a caller gets the value of its own key, or an error that has a reason;
//   - what it gets was read after it began, or was not sent before it began;
//   - there are never more trips than turns;
//   - a silent server costs nobody more than the budget, and nobody waits longer than the bound;
//   - a caller that leaves while it waits leaves at once;
//   - in the end every turn is back, and nobody waits.
func TestModel(t *testing.T) {
	s := effort.Seed(t, *seed)
	seen := map[string]int{}
	for round := range effort.Times(50, 3000) {
		synctest.Test(t, func(t *testing.T) { playWorld(t, rand.New(rand.NewPCG(s, uint64(round))), round, seen) })
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Log(seen)
	for _, what := range []string{"a trip of 1", "a trip of 2", "a trip of 3", "value", "reply", "silent", "given up", "open", "crowded", "left", "panic", "exit",
		"a rider's panic", "a rider's exit", "closed"} {
		if seen[what] == 0 && *seed == 0 {
			t.Errorf("never seen: %s", what)
		}
	}
}

const (
	modelBudget = 50 * time.Millisecond
	modelMost   = 70 * time.Millisecond
	modelLength = 300 * time.Millisecond
)

var modelPatience = Patience{Most: modelMost, Silent: modelBudget}

var (
	errModelOpen   = errors.New("open")
	errModelSilent = errors.New("no answer")
	errModelReply  = errors.New("WRONGTYPE")
)

type modelWorld struct {
	t    *testing.T
	gate *Gate
	size int

	mu     sync.Mutex
	r      *rand.Rand
	trips  int // under way
	moment int // grows with all that happens
	inline map[context.Context]bool
	heard  []time.Time
	seen   map[string]int // what happened, of all worlds
}

func (w *modelWorld) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *modelWorld) intN(n int) (i int) { w.locked(func() { i = w.r.IntN(n) }); return i }

func (w *modelWorld) ms(n int) time.Duration { return time.Duration(w.intN(n*1000)) * time.Microsecond }

func (w *modelWorld) see(what string) { w.locked(func() { w.seen[what]++ }) }

func (w *modelWorld) now() (n int) { w.locked(func() { w.moment++; n = w.moment }); return n }

// modelLine is one line with its breaker.
type modelLine struct {
	*Line
	mu     sync.Mutex
	opened bool
	last   time.Time // when it was open last
}

func (l *modelLine) refused() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened {
		return errModelOpen
	}
	return nil
}

func (l *modelLine) turn(t *testing.T, open bool) {
	l.mu.Lock()
	l.opened, l.last = open, time.Now()
	l.mu.Unlock()
	if !open {
		return
	}
	l.Dismiss(errModelOpen)
	gate, first := l.opt.Gate, (*Read)(nil)
	gate.mu.Lock()
	for w := gate.first; w != nil; w = w.next {
		if w.of == l.Line {
			t.Error("somebody waits at the gate for a line that is refused")
		}
	}
	gate.mu.Unlock()
	l.Line.mu.Lock()
	first = l.first
	l.Line.mu.Unlock()
	if first != nil {
		t.Error("somebody waits in a line that is refused")
	}
}

func (l *modelLine) openSince(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened || !l.last.Before(t)
}

// send is the server with all that is between.
func (w *modelWorld) send(ctx context.Context, _ time.Time, within time.Duration, reads []*Read) error {
	if within <= 0 || within > modelBudget {
		w.t.Errorf("a trip within %v", within)
	}
	w.locked(func() {
		if w.trips++; w.trips > w.size {
			w.t.Errorf("%d trips with %d turns", w.trips, w.size)
		}
		if ctx.Done() != nil || len(reads) == 1 {
			w.inline[ctx] = true
		}
		w.seen[fmt.Sprint("a trip of ", min(len(reads), 3))]++
	})
	defer w.locked(func() { w.trips-- })
	sent := w.now()
	took, fate := w.ms(4), w.intN(60)
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline))
	}
	switch {
	case fate == 0:
		panic("a hook panics")
	case fate == 1:
		runtime.Goexit()
	case fate < 8:
		time.Sleep(within)
		return errModelSilent
	}
	if took >= within {
		time.Sleep(within)
		return errModelSilent
	}
	time.Sleep(took)
	for i, r := range reads {
		switch {
		case fate == 9 && i > 0: // it broke off in between
			return errModelSilent
		case fate == 10:
			r.Err = errModelReply
		default:
			r.Raw, r.Found = fmt.Appendf(nil, "%s %v %d", r.Key, r.TTL, sent), true
		}
		r.Answered = true
	}
	w.locked(func() { w.heard = append(w.heard, time.Now()) })
	return nil
}

// lastHeard is when the server was heard last, as of now, or since.
func (w *modelWorld) lastHeard(since time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.heard); n > 0 && w.heard[n-1].After(since) {
		return w.heard[n-1]
	}
	return since
}

// playWorld plays one round. What is rare is not left to chance alone: every fifth is closed, and every fifth has one turn and many writers.
func playWorld(t *testing.T, r *rand.Rand, round int, seen map[string]int) {
	size := 1 + r.IntN(5)
	if round%5 == 1 {
		size = 1
	}
	w := &modelWorld{t: t, r: r, size: size, inline: map[context.Context]bool{}, seen: seen}
	w.gate = New(w.size)
	var works sync.WaitGroup
	closed, closes := false, r.IntN(10) == 0 || round%5 == 0
	lines := make([]*modelLine, 2)
	for i := range lines {
		lines[i] = &modelLine{}
		lines[i].Line = NewLine(Options{
			Gate: w.gate, Patience: modelPatience, Send: w.send, Refused: lines[i].refused, Closed: errors.ErrUnsupported,
			Start: func(f func()) (ok bool) {
				w.locked(func() {
					if ok = !closed; ok {
						works.Go(f)
					}
				})
				return ok
			},
		})
	}
	var callers sync.WaitGroup
	w.mu.Lock()                                                // draws, until all have begun
	writers := w.size == 1 && (r.IntN(2) == 0 || round%5 == 1) // many: only they crowd for long
	for range 20 + r.IntN(300) {
		arrives, line := time.Duration(r.Int64N(int64(modelLength))), lines[r.IntN(2)]
		key, ttl, kind, life := fmt.Sprint("key ", r.IntN(6)), r.IntN(2) == 0, r.IntN(8), time.Duration(r.IntN(60_000))*time.Microsecond
		if writers && r.IntN(2) == 0 {
			kind, arrives = 7, arrives/2
		}
		callers.Go(func() {
			time.Sleep(arrives)
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), modelID{}, new(int)))
			switch kind {
			case 0, 1:
				ctx, cancel = context.WithTimeout(ctx, life)
			case 2:
				defer time.AfterFunc(life, cancel).Stop()
			}
			defer cancel()
			if kind == 7 {
				w.write(ctx, line)
				return
			}
			w.read(ctx, line, key, ttl)
		})
	}
	w.mu.Unlock()
	works.Go(func() {
		for range 6 {
			time.Sleep(w.ms(60))
			line := lines[w.intN(2)]
			line.turn(t, true)
			time.Sleep(w.ms(20))
			line.turn(t, false)
		}
	})
	if closes {
		time.Sleep(w.ms(300))
		w.locked(func() { closed = true })
	}
	callers.Wait()
	works.Wait()
	if w.trips != 0 || w.gate.free != w.size || w.gate.first != nil {
		t.Errorf("in the end there are %d trips, %d of %d turns", w.trips, w.gate.free, w.size)
	}
	for _, l := range lines {
		if l.lanes != 0 || l.first != nil || len(l.unsent) != 0 || l.gating != 0 {
			t.Errorf("a line ends with %d lanes, %d waiting", l.lanes, len(l.unsent))
		}
	}
}

type modelID struct{}

func (w *modelWorld) read(ctx context.Context, l *modelLine, key string, ttl bool) {
	began, begun := w.now(), time.Now()
	exited := true
	var panicked any
	var a Answer
	func() {
		done := make(chan struct{})
		go func() { // of its own, as it may exit
			defer close(done)
			defer func() { panicked = recover() }()
			if err := l.refused(); err != nil {
				a.Err = err
			} else {
				a = l.Ask(ctx, Question{Key: key, TTL: ttl}, false, begun)
			}
			exited = false
		}()
		<-done
	}()
	var inline bool
	w.locked(func() { inline = w.inline[ctx] })
	took, ended := time.Since(begun), time.Now()
	if most := w.lastHeard(begun).Add(modelBudget + patience); ended.After(most) {
		w.t.Errorf("%v after the server was heard", ended.Sub(most)+modelBudget)
	}
	if took > modelMost+modelBudget+patience {
		w.t.Errorf("a read took %v", took)
	}
	var pe *flight.PanicError
	switch {
	case panicked != nil || exited:
		if w.see("panic"); panicked == nil {
			w.see("exit")
		}
		if !inline {
			w.t.Errorf("%v, exited %v: of somebody else's trip", panicked, exited)
		}
	case a.Err == nil:
		w.see("value")
		var n, sent int
		var k string
		var with bool
		if _, err := fmt.Sscanf(string(a.Raw), "key %d %t %d", &n, &with, &sent); err != nil {
			w.t.Fatalf("got %q: %v", a.Raw, err)
		}
		if k = fmt.Sprint("key ", n); k != key || with != ttl {
			w.t.Errorf("got %q for %s, %v", a.Raw, key, ttl)
		}
		if sent < began {
			w.t.Errorf("got what was sent at %d, and began at %d", sent, began)
		}
		copy(a.Raw, bytes.Repeat([]byte("x"), len(a.Raw))) // it is the caller's own
	case errors.Is(a.Err, errModelReply):
		w.see("reply")
	case errors.As(a.Err, &pe):
		w.see("a rider's panic")
	case errors.Is(a.Err, flight.ErrGoexit):
		w.see("a rider's exit")
	case errors.Is(a.Err, errors.ErrUnsupported):
		w.see("closed")
	case errors.Is(a.Err, errModelSilent):
		w.see("silent")
	case errors.Is(a.Err, ErrSilent):
		if w.see("given up"); took < modelBudget {
			w.t.Errorf("given up after %v", took)
		}
	case errors.Is(a.Err, errModelOpen):
		if w.see("open"); !l.openSince(begun) {
			w.t.Error("refused, and the breaker was closed")
		}
	case errors.Is(a.Err, ErrCrowded):
		if w.see("crowded"); took < modelMost {
			w.t.Errorf("crowded after %v", took)
		}
	case ctx.Err() != nil && errors.Is(a.Err, ctx.Err()):
		w.see("left")
		if at, ok := ctx.Deadline(); ok && ended.After(at) && !inline {
			w.t.Errorf("left %v late", ended.Sub(at))
		}
	default:
		w.t.Errorf("got error %v", a.Err)
	}
}

// write takes a turn as a write does.
func (w *modelWorld) write(ctx context.Context, l *modelLine) {
	begun := time.Now()
	if _, err := w.gate.Enter(ctx, l.Line, modelPatience); err != nil {
		switch took := time.Since(begun); {
		case errors.Is(err, errModelOpen) && l.openSince(begun):
		case errors.Is(err, ErrCrowded) && took >= modelMost, errors.Is(err, ErrSilent) && took >= modelBudget:
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		default:
			w.t.Errorf("a write waited %v: %v", took, err)
		}
		return
	}
	defer w.gate.Leave()
	w.locked(func() {
		if w.trips++; w.trips > w.size {
			w.t.Errorf("%d trips with %d turns", w.trips, w.size)
		}
	})
	defer w.locked(func() { w.trips-- })
	time.Sleep(w.ms(12)) // longer than a read
	w.locked(func() { w.heard = append(w.heard, time.Now()) })
	w.gate.Heard(time.Now())
}
