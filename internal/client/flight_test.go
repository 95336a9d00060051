package client_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/client/flight"
)

// do is what users of the package write around it.
func do(ctx context.Context, g *flight.Group[int], key string, work func() (int, error)) (int, error) {
	began := g.Now()
	f, lead := g.Join(key, began)
	if lead {
		go func() {
			r := <-flight.Go(work)
			f.Land(r.Value, r.Err)
		}()
	}
	v, _, err := f.Wait(ctx, began)
	return v, err
}

func TestOneFlightForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[int]
		runs := 0
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				v, err := do(t.Context(), &g, "k", func() (int, error) {
					runs++
					time.Sleep(time.Second)
					return 7, nil
				})
				if v != 7 || err != nil {
					t.Errorf("got %d, %v", v, err)
				}
			})
		}
		wg.Wait()
		if runs != 1 {
			t.Errorf("the work ran %d times", runs)
		}
		if v, _ := do(t.Context(), &g, "k", func() (int, error) { return 8, nil }); v != 8 {
			t.Errorf("after the landing: got %d, want the next flight's 8", v)
		}
	})
}

func TestTheLeaderMayLeaveAndNobodyElseSeesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g flight.Group[int]
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := do(hasty, &g, "k", func() (int, error) { time.Sleep(time.Second); return 7, nil }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the hasty leader got error %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if v, err := do(t.Context(), &g, "k", nil); v != 7 || err != nil {
				t.Errorf("the follower got %d, %v", v, err)
			}
		})
		wg.Wait()
	})
}

func TestPanicAndGoexitAreErrorsOfAllWaiters(t *testing.T) {
	cause := errors.New("the cause")
	for name, c := range map[string]struct {
		work func() (int, error)
		is   error
		text string
	}{
		"panic":          {func() (int, error) { panic("oops") }, nil, "panic: oops"},
		"panic of error": {func() (int, error) { panic(cause) }, cause, "panic: the cause"},
		"panic of nil":   {func() (int, error) { panic(nil) }, nil, "panic called with nil argument"},
		"Goexit":         {func() (int, error) { runtime.Goexit(); return 7, nil }, flight.ErrGoexit, "Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g flight.Group[int]
				release := make(chan struct{})
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() {
						v, err := do(t.Context(), &g, "k", func() (int, error) { <-release; return c.work() })
						if v != 0 || err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
							t.Errorf("got %d, %v", v, err)
						}
						var p *flight.PanicError
						if errors.As(err, &p) && !strings.Contains(string(p.Stack), "flight_test") {
							t.Errorf("the stack does not show who panicked: %s", p.Stack)
						}
					})
				}
				synctest.Wait()
				close(release)
				wg.Wait()
				if v, err := do(t.Context(), &g, "k", func() (int, error) { return 8, nil }); v != 8 || err != nil {
					t.Errorf("the key is stuck: %d, %v", v, err)
				}
			})
		})
	}
}

// The schedule that a late landing could get wrong:
//
//  1. the old flight begins
//  2. the key is forgotten
//  3. a new flight begins
//  4. the old one lands
//  5. a third caller joins the new one
func TestAForgottenFlightLandsForItsOwnAndLeavesItsSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, forget := range map[string]func(g *flight.Group[int]){
			"Forget":    func(g *flight.Group[int]) { g.Forget("k") },
			"ForgetAll": func(g *flight.Group[int]) { g.ForgetAll() },
		} {
			var g flight.Group[int]
			old, _ := g.Join("k", g.Now())
			forget(&g)
			young, lead := g.Join("k", g.Now())
			if !lead || young == old {
				t.Fatalf("%s: a Join after it joined the older flight", name)
			}
			old.Land(1, nil)
			third, lead := g.Join("k", g.Now())
			if lead || third != young {
				t.Fatalf("%s: the old landing took down the new flight", name)
			}
			young.Land(2, nil)
			for f, want := range map[*flight.Flight[int]]int{old: 1, young: 2} {
				if v, _, err := f.Wait(t.Context(), 0); v != want || err != nil {
					t.Errorf("%s: got %d, %v; want %d", name, v, err, want)
				}
			}
		}
	})
}

func TestALandedFlightBeatsADoneContext(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // select chooses at random
		var g flight.Group[int]
		f, _ := g.Join("k", g.Now())
		f.Land(7, nil)
		if v, _, err := f.Wait(done, 0); v != 7 || err != nil {
			t.Fatalf("got %d, %v", v, err)
		}
	}
}

func TestTheFirstLandingCounts(t *testing.T) {
	var g flight.Group[int]
	old, _ := g.Join("k", g.Now())
	old.Land(1, nil)
	young, lead := g.Join("k", g.Now())
	old.Land(2, errors.New("late"))
	if v, _, err := old.Wait(t.Context(), 0); v != 1 || err != nil {
		t.Errorf("got %d, %v", v, err)
	}
	if f, _ := g.Join("k", g.Now()); !lead || f != young {
		t.Error("the second landing took down the next flight")
	}
}

func abandoned(f *flight.Flight[int]) bool {
	select {
	case <-f.Abandoned():
		return true
	default:
		return false
	}
}

func TestAbandon(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for _, abandon := range []bool{false, true} {
		g := flight.Group[int]{Abandon: abandon}
		f, _ := g.Join("k", g.Now())
		g.Join("k", g.Now())
		f.Wait(done, 0)
		if abandoned(f) {
			t.Fatal("abandoned while one waits")
		}
		f.Wait(done, 0)
		if abandoned(f) != abandon {
			t.Errorf("Abandon %v: abandoned is %v with nobody left", abandon, abandoned(f))
		}
		if _, lead := g.Join("k", g.Now()); lead != abandon {
			t.Errorf("Abandon %v: the next caller leads: %v", abandon, lead)
		}
		f.Land(7, nil)
	}
}

func TestWorkThatIsWantedIsNeverAbandoned(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	g := flight.Group[int]{Abandon: true}
	f, ok := g.Lead("k")
	if _, again := g.Lead("k"); !ok || again {
		t.Fatalf("Lead gave %v, then %v", ok, again)
	}
	if joined, lead := g.Join("k", g.Now()); lead || joined != f {
		t.Fatal("Join did not join it")
	}
	f.Wait(done, 0)
	if abandoned(f) {
		t.Error("abandoned when its only waiter left")
	}
	f.Land(7, nil)
}

func TestManyAtOnce(t *testing.T) {
	g := flight.Group[int]{Abandon: true}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 300 {
				ctx, cancel := context.WithCancel(t.Context())
				if (i+j)%3 == 0 {
					cancel()
				}
				key := string(rune('a' + j%3))
				if v, err := do(ctx, &g, key, func() (int, error) { runtime.Gosched(); return 7, nil }); v != 7 && !errors.Is(err, context.Canceled) {
					t.Errorf("got %d, %v", v, err)
				}
				if j%17 == 0 {
					g.Forget(key)
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

// The origin is read between the beginnings of two calls.
func TestWhomALandingServes(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		land  func(f *flight.Flight[int])
		early int
		late  int // 0: it is to look again
		err   error
	}{
		"stored":     {func(f *flight.Flight[int]) { f.Land(7, nil) }, 7, 7, nil},
		"not stored": {func(f *flight.Flight[int]) { f.LandEarly(7, nil) }, 7, 0, nil},
		"an error":   {func(f *flight.Flight[int]) { f.Land(0, failed) }, 0, 0, failed},
	} {
		var g flight.Group[int]
		early := g.Now()
		f, lead := g.Join("k", early)
		if !lead {
			t.Fatal("the first does not lead")
		}
		slow := g.Now() // began before the origin was read, and joins after
		f.Reads()
		late := g.Now()
		for _, began := range []flight.Moment{slow, late} {
			if joined, lead := g.Join("k", began); lead || joined != f {
				t.Fatalf("%s: a call that began at %d did not join", name, began)
			}
		}
		if !f.Stores() {
			t.Errorf("%s: nobody is late", name)
		}
		if after, lead := g.Join("k", g.Now()); !lead || after == f {
			t.Errorf("%s: somebody joined what is being stored", name)
		}
		c.land(f)
		for _, began := range []flight.Moment{early, slow} {
			if v, again, err := f.Wait(t.Context(), began); v != c.early || again || err != c.err {
				t.Errorf("%s: a call from before the reading got %d, %v, %v", name, v, again, err)
			}
		}
		v, again, err := f.Wait(t.Context(), late)
		if v != c.late || again != (c.late == 0 && c.err == nil) || err != c.err {
			t.Errorf("%s: a late call got %d, %v, %v", name, v, again, err)
		}
	}
}

func TestACallThatIsNotLateNeedsNoProof(t *testing.T) {
	var g flight.Group[int]
	f, _ := g.Join("k", g.Now())
	slow := g.Now()
	f.Reads()
	g.Join("k", slow)
	if f.Stores() {
		t.Error("a call that began before the reading is late")
	}
}

func TestNobodyIsLateTwice(t *testing.T) {
	var g flight.Group[int]
	first, _ := g.Join("k", g.Now())
	first.Reads()
	call := g.Now()
	g.Join("k", call)
	g.Forget("k") // a Delete
	second, lead := g.Join("k", g.Now())
	if !lead {
		t.Fatal("the forgotten flight was joined")
	}
	second.Reads()
	first.LandEarly(1, nil)
	if _, again, _ := first.Wait(t.Context(), call); !again {
		t.Fatal("a late call got what was not stored")
	}
	if f, lead := g.Join("k", call); lead || f != second {
		t.Fatal("it did not find the second flight")
	}
	g.Forget("k")
	second.LandEarly(2, nil)
	if v, again, err := second.Wait(t.Context(), call); v != 2 || again || err != nil {
		t.Errorf("it is late again: %d, %v, %v", v, again, err)
	}
}

func TestQueuedWorkIsAbandonedWhenAllLeave(t *testing.T) {
	for name, c := range map[string]struct {
		leave          func(f *flight.Flight[int], cancel func())
		turn, abandons bool
	}{
		"while it is queued": {func(f *flight.Flight[int], cancel func()) { f.Queue(func(time.Time, bool) {}); cancel() }, false, true},
		"before":             {func(f *flight.Flight[int], cancel func()) { cancel(); f.Queue(func(time.Time, bool) {}) }, false, true},
		"after its turn":     {func(f *flight.Flight[int], cancel func()) { f.Queue(func(time.Time, bool) {}); f.Turn(); cancel() }, true, false},
		"nobody leaves":      {func(f *flight.Flight[int], cancel func()) { f.Queue(func(time.Time, bool) {}) }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g flight.Group[int] // which abandons nothing else
				ctx, cancel := context.WithCancel(t.Context())
				began := g.Now()
				f, _ := g.Join("k", began)
				go f.Wait(ctx, began)
				synctest.Wait()
				c.leave(f, func() { cancel(); synctest.Wait() })
				if f.Turn() != c.turn {
					t.Errorf("its turn is %v, want %v", !c.turn, c.turn)
				}
				select {
				case <-f.Abandoned():
					if !c.abandons {
						t.Error("it was abandoned")
					}
				default:
					if c.abandons {
						t.Error("it was not abandoned")
					}
				}
				if next, lead := g.Join("k", began); lead != c.abandons {
					t.Errorf("the next caller leads: %v", lead)
				} else {
					next.Land(0, nil)
				}
				f.Land(0, nil)
				cancel()
			})
		})
	}
}

func TestTheQueueLearnsOfJoiners(t *testing.T) {
	var g flight.Group[int]
	f, _ := g.Join("k", 0)
	at := time.Now()
	f.Wanted(at.Add(time.Second), false)
	var until time.Time
	var hurry bool
	calls := 0
	f.Queue(func(u time.Time, h bool) { until, hurry = u, h; calls++ })
	if calls != 1 || !until.Equal(at.Add(time.Second)) || hurry {
		t.Errorf("of those before: %v, %v", until.Sub(at), hurry)
	}
	f.Wanted(at.Add(3*time.Second), true)
	f.Wanted(at.Add(2*time.Second), false)
	if calls != 3 || !until.Equal(at.Add(3*time.Second)) || !hurry {
		t.Errorf("the last to leave, and the haste of one: %v, %v", until.Sub(at), hurry)
	}
	f.Wanted(time.Time{}, false)
	f.Wanted(at, false)
	if !until.IsZero() {
		t.Errorf("somebody never leaves: %v", until)
	}
	f.Turn()
	f.Wanted(at, false)
	if calls != 5 {
		t.Errorf("%d calls, one after its turn", calls)
	}
	f.Land(0, nil)
}
