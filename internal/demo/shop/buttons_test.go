package shop_test

import (
	"errors"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// Without jitter, values that were stored together end together, and are loaded together. With it their ends are spread.
func TestFillAtOnce(t *testing.T) {
	for name, hand := range map[string]bool{"by hand": true, "mayfly": false} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *panel.Settings) {
				s.Mayfly, s.Shoppers, s.Pause, s.Early, s.Local = !hand, 20, 200*time.Millisecond, false, false
			}, func(t *testing.T, s *shop.Shop) {
				fill := func(jitter bool) panel.Figures {
					t.Helper()
					set(t, s, func(s *panel.Settings) { s.Jitter = jitter })
					press(t, s, panel.FillAtOnce, "all is filled at once")
					pass(time.Second / 2)
					f := s.Figures(t.Context())
					if len(f.Ends) != 8 {
						t.Errorf("%d products are kept", len(f.Ends))
					}
					return f
				}
				if f := fill(false); f.Together != 8 {
					t.Errorf("without jitter %d of 8 end together: %v", f.Together, f.Ends)
				}
				if f := during(t, s, 4*time.Second); f.Queries > 0 {
					t.Errorf("%d queries before the end", f.Queries)
				}
				if f := during(t, s, time.Second); f.Queries < 5 {
					t.Errorf("%d queries at the end", f.Queries)
				}
				const fills = 10 // eight products are few: once, chance may put their ends together
				spread := 0
				for range fills {
					spread += fill(true).Together
				}
				if most := 6 * fills; !hand && spread > most || hand && spread != 8*fills {
					t.Errorf("with the switch for jitter on %d of %d end together", spread, 8*fills)
				}
			})
		})
	}
}

// While the database is slow it can do a quarter. With the admission of loads a crowd that asks for three quarters gets that, and all again at once
// when it is over. Without it nobody is answered, also for as long after as the database works on what nobody waits for any more.
func TestSlowDatabase(t *testing.T) {
	c := shop.Catalogue{Workers: 2, Query: 30 * time.Millisecond}
	if effort.Long() {
		c = shop.Catalogue{}
	}
	withCatalogue(t, c, true, func(t *testing.T, s *shop.Shop, _ *redistest.Server) {
		sum := func(percent []int) (n int) {
			for _, p := range percent {
				n += p
			}
			return n / len(percent)
		}
		press(t, s, panel.SlowDatabase, "the database is slow")
		pass(12 * time.Second)
		for _, admission := range []bool{true, false} {
			set(t, s, func(s *panel.Settings) { s.Admission = admission })
			before, _ := answered(t, s, 3)
			press(t, s, panel.SlowDatabase, "the database is slow")
			slow, f := answered(t, s, 9)
			if left := f.Slow; left <= 0 || left > time.Second {
				t.Errorf("after 9 s it is slow for %v more", left)
			}
			answered(t, s, 1)
			after, _ := answered(t, s, 4)
			t.Logf("admission %v: before %v, slow %v, after %v, %+v", admission, before, slow, after, f.Loads)
			if sum(before) < 97 {
				t.Errorf("before: %v %%", before)
			}
			if got := sum(slow); admission != (got >= 20) || admission != (sum(after) > 90) {
				t.Errorf("admission %v: %v %%, then %v %%", admission, slow, after)
			}
			if admission {
				pass(15 * time.Second)
			}
		}
	})
}

// The shop's own database is slow too, and no longer than it says.
func TestSlowQueries(t *testing.T) {
	inShop(t, func(s *panel.Settings) { s.Mayfly, s.Shoppers, s.Query = false, 1, 100*time.Millisecond }, func(t *testing.T, s *shop.Shop) {
		longest := func() time.Duration {
			s.Figures(t.Context())
			pass(9 * time.Second)
			return s.Figures(t.Context()).Took.At(1)
		}
		press(t, s, panel.SlowDatabase, "the database is slow")
		if took := longest(); took < 380*time.Millisecond || took > 420*time.Millisecond {
			t.Errorf("a query of 100 ms took %v", took)
		}
		pass(2 * time.Second)
		if took := longest(); took > 110*time.Millisecond {
			t.Errorf("and then %v", took)
		}
	})
}

func TestButtonsOfAClosedShop(t *testing.T) {
	s, err := shop.Open(t.Context(), shop.Options{Redis: redistest.Start(t).Client().Options()})
	if err != nil {
		t.Fatal(err)
	}
	s.Close(t.Context())
	for _, b := range []panel.Button{panel.EmptyRedis, panel.FillAtOnce, panel.SlowDatabase, panel.TwoMore} {
		if _, err := s.Press(t.Context(), b); !errors.Is(err, mayfly.ErrClosed) {
			t.Errorf("%s: %v", b, err)
		}
	}
}
