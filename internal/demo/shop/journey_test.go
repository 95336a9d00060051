package shop_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
)

// What callers got adds up to all of them, and no answer that somebody waited for counts as one of a cache, whatever is the matter with Redis:
// in a bubble only the database takes time, and a Redis that hangs.
func TestWhatCallersGot(t *testing.T) {
	hand := func(s *panel.Settings) { s.Mayfly = false }
	shared := func(s *panel.Settings) { s.Pages, s.Early, s.Local, s.Processes = false, false, false, 4 }
	for _, test := range []struct {
		name   string
		change func(*panel.Settings)
		button panel.Button // "": none
		says   string
		holds  func(f panel.Figures, slow int64) bool
	}{
		{"by hand", hand, "", "", func(f panel.Figures, slow int64) bool { return f.FromRedis > 0 && f.FromMemory+f.Stale == 0 }},
		{"by hand, Redis killed", hand, panel.KillRedis, "Redis killed", func(f panel.Figures, slow int64) bool { return f.Waited == f.Pages }},
		{"mayfly", nil, "", "", func(f panel.Figures, slow int64) bool { return f.FromMemory > f.Pages/2 }},
		{"mayfly, loads of other processes", shared, "", "", func(f panel.Figures, slow int64) bool { return slow > 3 && f.FromRedis > slow }},
		{"mayfly, Redis killed", nil, panel.KillRedis, "Redis killed", func(f panel.Figures, slow int64) bool { return f.Waited > f.Pages/2 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			inShop(t, func(s *panel.Settings) {
				s.Pages, s.Shoppers = true, 30
				if test.change != nil {
					test.change(s)
				}
			}, func(t *testing.T, s *shop.Shop) {
				time.Sleep(3 * time.Second)
				if test.button != "" {
					press(t, s, test.button, test.says)
					time.Sleep(8 * time.Second) // until the copies that are left have ended
				}
				s.Figures(t.Context())
				time.Sleep(6 * time.Second)
				synctest.Wait()
				f := s.Figures(t.Context())
				var all, slow int64
				for took, n := range f.Took {
					if all += int64(n); took > time.Millisecond {
						slow += int64(n)
					}
				}
				t.Logf("%d pages, %d of them slow: %+v", f.Pages, slow, f.Got)
				if f.Pages == 0 || f.Pages != all || f.FromMemory+f.FromRedis+f.Stale+f.Waited+f.Failed != all {
					t.Errorf("the parts of %d pages: %+v", all, f.Got)
				}
				if slow > f.Waited || f.Waited > slow+slow/10 || !test.holds(f, slow) {
					t.Errorf("%d of %d pages were waited for: %+v", slow, f.Pages, f.Got)
				}
				if test.button != "" {
					press(t, s, test.button, "Redis is back")
					time.Sleep(2 * time.Second) // until go-redis has noticed, in goroutines of its own
				}
			})
		})
	}
}
