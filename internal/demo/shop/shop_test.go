package shop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// pass lets time pass, which it does in a bubble only.
func pass(d time.Duration) {
	synctest.Wait() // panics outside of one
	time.Sleep(d)
}

// inShop opens a shop on an engine of its own in a bubble, where its figures are of the protocols and not of the machine.
func inShop(t *testing.T, change func(*panel.Settings), f func(t *testing.T, s *shop.Shop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.Start(t).Client()
		set := panel.Default
		set.Mayfly, set.Shoppers, set.Pause, set.Pages = true, 60, 600*time.Millisecond, false
		if change != nil {
			change(&set)
		}
		s, err := shop.Open(t.Context(), shop.Options{Redis: rdb.Options(), Settings: set, Reviews: 6})
		if err != nil {
			t.Fatal(err)
		}
		f(t, s)
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if left := rdb.Keys(t.Context(), "mayfly-demo:*").Val(); len(left) != 0 {
			t.Errorf("the shop left behind %v", left)
		}
	})
}

// during returns the figures of a while, added up; of what is looked at, the last, and the worst of the worst.
func during(t *testing.T, s *shop.Shop, d time.Duration) (sum panel.Figures) {
	t.Helper()
	s.Figures(t.Context()) // what was before
	for range d / (250 * time.Millisecond) {
		time.Sleep(250 * time.Millisecond)
		f := s.Figures(t.Context())
		f.Pages += sum.Pages
		f.Failed += sum.Failed
		f.Rendered += sum.Rendered
		f.Queries += sum.Queries
		f.FromMemory += sum.FromMemory
		f.FromRedis += sum.FromRedis
		f.Stale += sum.Stale
		f.Waited += sum.Waited
		f.Carts += sum.Carts
		f.Lost += sum.Lost
		f.Unavailable += sum.Unavailable
		f.Worst = max(f.Worst, sum.Worst)
		f.P99 = max(f.P99, sum.P99)
		sum = f
	}
	return sum
}

// set changes one thing.
func set(t *testing.T, s *shop.Shop, change func(*panel.Settings)) {
	t.Helper()
	next := s.Settings()
	change(&next)
	if err := s.Set(t.Context(), next); err != nil {
		t.Fatal(err)
	}
}

// The main thing: under the stampede the database is asked at least ten times less, and nobody waits for long.
func TestMayflyUnderTheStampede(t *testing.T) {
	if effort.Race {
		t.Skip("TestSwitches shows the race detector the same code")
	}
	inShop(t, func(s *panel.Settings) {
		s.Mayfly, s.Shoppers, s.Pause, s.TTL = false, 240, 300*time.Millisecond, time.Minute
	}, func(t *testing.T, s *shop.Shop) {
		stampede := func() panel.Figures {
			time.Sleep(1500 * time.Millisecond)
			s.Figures(t.Context())
			if _, err := s.Press(t.Context(), panel.ExpireEverything); err != nil {
				t.Fatal(err)
			}
			return during(t, s, 2*time.Second)
		}
		hand := stampede()
		set(t, s, func(s *panel.Settings) { s.Mayfly = true })
		ours := stampede()
		if hand.Queries < 10*ours.Queries || ours.Queries == 0 || hand.Worst < 20 || ours.Worst > 2 { // 2: a key that expires while it is loaded is free again
			t.Errorf("by hand %d queries, %d of one product at once; mayfly %d, %d", hand.Queries, hand.Worst, ours.Queries, ours.Worst)
		}
		if hand.P99 < 2*ours.P99 || ours.P99 > 500*time.Millisecond || ours.Failed > 0 {
			t.Errorf("p99 by hand %v, mayfly %v, %d failed", hand.P99, ours.P99, ours.Failed)
		}
	})
}

// Each switch moves the figure that it is there for. The bounds are six deviations and more from what comes of it on average. Under the race
// detector each is turned for a moment: it looks at the same code, and a figure takes a minute.
func TestSwitches(t *testing.T) {
	for _, test := range []struct {
		name   string
		lasts  time.Duration
		before func(*panel.Settings)
		off    func(*panel.Settings)
		on     func(*panel.Settings)
		holds  func(off, on panel.Figures) bool
	}{
		{
			"the lease: one query of a product at a time",
			4 * time.Second,
			func(s *panel.Settings) {
				s.Pause, s.Early, s.Local, s.Processes, s.TTL = 200*time.Millisecond, false, false, 4, 2*time.Second
			},
			func(s *panel.Settings) { s.Lease = false }, func(s *panel.Settings) { s.Lease = true },
			func(off, on panel.Figures) bool { return off.Worst >= 4 && on.Worst == 1 && off.Queries > 2*on.Queries },
		},
		{
			"early refresh: readers do not wait",
			5 * time.Second,
			func(s *panel.Settings) { s.Pause, s.Local = 200*time.Millisecond, false },
			func(s *panel.Settings) { s.Early = false }, func(s *panel.Settings) { s.Early = true },
			func(off, on panel.Figures) bool { return off.Waited > 5*on.Waited },
		},
		{
			"the local tier: Redis is asked seldom",
			6 * time.Second,
			nil,
			func(s *panel.Settings) { s.Local = false }, func(s *panel.Settings) { s.Local = true },
			func(off, on panel.Figures) bool {
				return off.FromRedis > 10*on.FromRedis && off.FromMemory == 0 && on.FromMemory > 10*on.FromRedis
			},
		},
		{
			"the page cache: handlers make few pages",
			4 * time.Second,
			nil,
			func(s *panel.Settings) { s.Pages = false }, func(s *panel.Settings) { s.Pages = true },
			func(off, on panel.Figures) bool {
				return off.Rendered >= off.Pages && on.Rendered < on.Pages/5
			},
		},
		{
			"sliding: no cart ends while it is used",
			10 * time.Second,
			nil,
			func(s *panel.Settings) { s.Sliding = false }, func(s *panel.Settings) { s.Sliding = true },
			func(off, on panel.Figures) bool { return off.Lost > 20 && on.Lost == 0 && on.Carts > 0 },
		},
		{
			"field TTLs: no address is kept too long",
			10 * time.Second,
			nil,
			func(s *panel.Settings) { s.Fields = false }, func(s *panel.Settings) { s.Fields = true },
			func(off, on panel.Figures) bool { return off.Addresses > 5 && on.Addresses == 0 },
		},
		{
			"visits: every key has an end",
			12 * time.Second,
			func(s *panel.Settings) { s.Visits = true },
			func(s *panel.Settings) { s.Visits = false }, func(s *panel.Settings) { s.Visits = true },
			func(off, on panel.Figures) bool { return off.Endless > 55 && on.Endless < off.Endless },
		},
	} {
		if effort.Race {
			test.lasts = time.Second
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inShop(t, test.before, func(t *testing.T, s *shop.Shop) {
				look := func(change func(*panel.Settings)) panel.Figures {
					set(t, s, change)
					time.Sleep(2 * time.Second)
					if _, err := s.Press(t.Context(), panel.ExpireEverything); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second) // the stampede itself is another test's
					return during(t, s, test.lasts)
				}
				off, on := look(test.off), look(test.on)
				if !effort.Race && !test.holds(off, on) {
					t.Errorf("off %+v\non  %+v", off, on)
				}
			})
		})
	}
}

func press(t *testing.T, s *shop.Shop, b panel.Button, says string) {
	t.Helper()
	if got, err := s.Press(t.Context(), b); err != nil || got != says {
		t.Fatalf("%s: %q, %v", b, got, err)
	}
}

// Whatever happens to Redis, the shop is open, and with mayfly nobody waits long for Redis.
func TestRedisInTrouble(t *testing.T) {
	for _, test := range []struct {
		button panel.Button
		is     panel.Health
		says   string
		hand   time.Duration // what a page takes at least, by hand, where that says something
	}{
		{panel.KillRedis, panel.Killed, "Redis killed", 0},
		{panel.HangRedis, panel.Hung, "Redis hangs", 2 * time.Second},
	} {
		t.Run(string(test.button), func(t *testing.T) {
			inShop(t, func(s *panel.Settings) { s.Pages, s.Shoppers = true, 30 }, func(t *testing.T, s *shop.Shop) {
				time.Sleep(3 * time.Second)
				press(t, s, test.button, test.says)
				during(t, s, time.Second) // until it is noticed
				f := during(t, s, 5*time.Second)
				if f.Redis != test.is || f.Failed > 0 || f.Pages < 100 || f.P99 >= 2*time.Second { // the slowest page of all, a slow query or two of the database included
					t.Errorf("with mayfly %+v", f)
				}
				if f.Unavailable == 0 {
					t.Error("carts are there without a Redis")
				}
				press(t, s, test.button, "Redis is back")
				during(t, s, 5*time.Second) // until a probe has found it
				if f := during(t, s, 5*time.Second); f.Redis != panel.Up || f.Unavailable > 0 || f.FromMemory+f.FromRedis < f.Pages/2 {
					t.Errorf("it is back, and %+v", f)
				}
				if test.hand > 0 {
					set(t, s, func(s *panel.Settings) { s.Mayfly = false })
					time.Sleep(3 * time.Second)
					press(t, s, test.button, test.says)
					time.Sleep(20 * time.Second)
					if f := during(t, s, 20*time.Second); f.P99 < test.hand {
						t.Errorf("by hand %+v", f)
					}
				}
			})
		})
	}
}
