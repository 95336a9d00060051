package shop_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// withCatalogue opens a shop with a catalogue and mayfly on, and nobody in it, in a bubble.
func withCatalogue(t *testing.T, c shop.Catalogue, own bool, f func(t *testing.T, s *shop.Shop, srv *redistest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		next := panel.Default
		next.Mayfly, next.Shoppers = true, 0
		s, err := shop.Open(t.Context(), shop.Options{Redis: srv.Client().Options(), Settings: next, Own: own, Catalogue: c})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		f(t, s, srv)
	})
}

// answered returns how many per cent of the crowd were answered in each second, and the figures of the last.
func answered(t *testing.T, s *shop.Shop, seconds int) (percent []int, last panel.Figures) {
	t.Helper()
	s.Figures(t.Context()) // what was before
	for range seconds {
		time.Sleep(time.Second)
		last = s.Figures(t.Context())
		percent = append(percent, int(100*last.Answered/max(1, last.Answered+last.GivenUp)))
	}
	return percent, last
}

// This is what the button is for: with the admission of loads an emptied Redis is full again after about as long as the database needs for all
// articles. Without it most of the crowd gets no answer for as long as one looks, and turning it on ends that. By hand is no better.
func TestEmptyRedisWithAndWithoutAdmission(t *testing.T) {
	c, ideal := shop.Catalogue{Articles: 240, Rate: 120, Workers: 3, Query: 100 * time.Millisecond}, 8 // 30 queries a second
	if effort.Long() {
		c, ideal = shop.Catalogue{}, 10
	}
	withCatalogue(t, c, true, func(t *testing.T, s *shop.Shop, _ *redistest.Server) {
		time.Sleep(5 * time.Millisecond) // looks and ticks are at different moments
		fine := func(what string, percent []int) {
			t.Log(what, percent)
			if last := percent[len(percent)-1]; last < 99 {
				t.Errorf("%s: answered %v %%", what, percent)
			}
		}
		collapsed := func(what string, percent []int, f panel.Figures) {
			t.Log(what, percent, f.Loads)
			if last := percent[len(percent)-1]; last > 50 || f.Loads.Limit != -1 || f.Loads.Queued != 0 || f.Loads.AtDatabase < 60 {
				t.Errorf("%s: answered %v %%, %+v", what, percent, f.Loads)
			}
		}
		press(t, s, panel.EmptyRedis, "Redis is emptied")
		percent, f := answered(t, s, ideal/4)
		if f.Loads.Limit <= 0 || f.Loads.AtDatabase > f.Loads.Limit || f.Loads.Queued == 0 || f.GivenUp == 0 {
			t.Errorf("while it is loaded: %v %%, %+v", percent, f)
		}
		percent, _ = answered(t, s, ideal*3/4)
		fine("admission", percent)
		set(t, s, func(s *panel.Settings) { s.Admission = false })
		percent, _ = answered(t, s, 1)
		fine("without, and all is there", percent)
		press(t, s, panel.EmptyRedis, "Redis is emptied")
		percent, f = answered(t, s, ideal*effort.Times(1, 2))
		collapsed("without", percent, f)
		set(t, s, func(s *panel.Settings) { s.Admission = true })
		percent, _ = answered(t, s, ideal*5/4) // what is in the database's line first
		fine("with it again", percent)
		set(t, s, func(s *panel.Settings) { s.Mayfly = false })
		percent, f = answered(t, s, ideal/2*effort.Times(1, 4))
		collapsed("by hand", percent, f)
	})
}

// A Redis that others use loses nothing of theirs.
func TestEmptyRedisOfOthers(t *testing.T) {
	for own, stays := range map[bool]int64{true: 0, false: 1} {
		withCatalogue(t, shop.Catalogue{Rate: 1}, own, func(t *testing.T, s *shop.Shop, srv *redistest.Server) {
			rdb := srv.Client()
			rdb.Set(t.Context(), "theirs", "v", time.Hour)
			rdb.Set(t.Context(), "mayfly-demo:ours", "v", time.Hour)
			press(t, s, panel.EmptyRedis, "Redis is emptied")
			if theirs, ours := rdb.Exists(t.Context(), "theirs").Val(), rdb.Exists(t.Context(), "mayfly-demo:ours").Val(); theirs != stays || ours != 0 {
				t.Errorf("a Redis of our own %v: %d of theirs, %d of ours", own, theirs, ours)
			}
		})
	}
}

// The crowd comes with the button, stays for a minute after it was pressed last, and costs nothing before and after.
func TestTheCrowdComesAndGoes(t *testing.T) {
	withCatalogue(t, shop.Catalogue{Rate: 4}, true, func(t *testing.T, s *shop.Shop, _ *redistest.Server) {
		crowd := func(d time.Duration) int64 {
			t.Helper()
			s.Figures(t.Context())
			time.Sleep(d)
			f := s.Figures(t.Context())
			return f.Answered + f.GivenUp
		}
		if n := crowd(time.Minute); n != 0 {
			t.Errorf("%d requests before the button was pressed", n)
		}
		press(t, s, panel.EmptyRedis, "Redis is emptied")
		if n := crowd(40 * time.Second); n < 150 {
			t.Errorf("%d requests in 40 s, want 4 a second", n)
		}
		press(t, s, panel.EmptyRedis, "Redis is emptied")
		if n := crowd(40 * time.Second); n < 150 {
			t.Errorf("%d requests in 40 s after it was pressed again, want 4 a second", n)
		}
		time.Sleep(30 * time.Second)
		if n := crowd(time.Minute); n != 0 || s.Figures(t.Context()).Loads != (panel.Loads{}) {
			t.Errorf("%d requests more than a minute later", n)
		}
		press(t, s, panel.EmptyRedis, "Redis is emptied")
		if n := crowd(10 * time.Second); n < 30 {
			t.Errorf("%d requests in 10 s of the crowd that came back", n)
		}
	})
}

// A Redis that is killed while the crowd is there costs those who wait their answers, and nobody's turn for ever.
func TestTheCatalogueWithoutItsRedis(t *testing.T) {
	c := shop.Catalogue{Articles: 20, Rate: 40, Workers: 2, Query: 20 * time.Millisecond} // all that is asked for can be queried
	withCatalogue(t, c, true, func(t *testing.T, s *shop.Shop, _ *redistest.Server) {
		press(t, s, panel.EmptyRedis, "Redis is emptied")
		answered(t, s, 2)
		press(t, s, panel.KillRedis, "Redis killed")
		percent, _ := answered(t, s, 5)
		if last := percent[len(percent)-1]; last < 99 {
			t.Errorf("without a Redis %v %%", percent)
		}
		press(t, s, panel.KillRedis, "Redis is back")
		if _, f := answered(t, s, 5); f.GivenUp > 0 {
			t.Errorf("it is back, and %d gave up", f.GivenUp)
		}
	})
}

func TestTheCatalogueIsChecked(t *testing.T) {
	rdb := redistest.Start(t).Client()
	_, err := shop.Open(t.Context(), shop.Options{Redis: rdb.Options(), Catalogue: shop.Catalogue{Rate: -1}})
	if err == nil || !strings.Contains(err.Error(), "Options.Catalogue: Rate must not be negative, got -1") {
		t.Error(err)
	}
}

// The switch is the catalogue's: the shop's processes go on, with the copies that they have.
func TestAdmissionLeavesTheProcessesAlone(t *testing.T) {
	withCatalogue(t, shop.Catalogue{}, true, func(t *testing.T, s *shop.Shop, _ *redistest.Server) {
		set(t, s, func(s *panel.Settings) { s.Processes, s.Pages, s.TTL = 1, false, time.Minute })
		look := func(want string) {
			t.Helper()
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/product/1", nil))
			if from := w.Header().Get("X-Product-From"); from != want {
				t.Errorf("the product came from %q, want %q", from, want)
			}
			time.Sleep(time.Second) // until the process has been told of its own change
		}
		look("database")
		look("Redis")
		look("memory")
		set(t, s, func(s *panel.Settings) { s.Admission = false })
		look("memory")
	})
}

// Nobody waits for loads that nobody wants: the demo is to end within a second of Ctrl-C, whatever its database has in line.
func TestTheShopClosesInTheMiddleOfACollapse(t *testing.T) {
	withCatalogue(t, shop.Catalogue{Rate: 120, Workers: 1, Query: 100 * time.Millisecond}, true, func(t *testing.T, s *shop.Shop, _ *redistest.Server) {
		set(t, s, func(s *panel.Settings) { s.Admission = false })
		press(t, s, panel.EmptyRedis, "Redis is emptied")
		if _, f := answered(t, s, 3); f.Loads.AtDatabase < 20 {
			t.Fatalf("no collapse: %+v", f)
		}
		begun := time.Now()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Second/2 {
			t.Errorf("it took %v to close", took)
		}
	})
}
