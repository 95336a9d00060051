package dashboard_test

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/dashboard"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
)

// tried is a row of the table, as the report has it.
type tried struct {
	Event, Way string
	Phases     [3]struct {
		Name                         string
		Seconds                      float64
		Pages, Errors, Queries       int
		Fresh, Stale, Waited, Failed float64
		P50, P99                     float64
	}
}

// table returns what was done, as the report and the summary have it.
func table(t *testing.T, s *shop.Shop, r *dashboard.Recorder) (all []tried, text string) {
	t.Helper()
	var page bytes.Buffer
	if err := dashboard.Report(&page, s, r, dashboard.Options{}); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(page.String(), "<script>const about = ")
	var about struct{ Trials []tried }
	if err := json.NewDecoder(strings.NewReader(rest)).Decode(&about); err != nil {
		t.Fatal(err)
	}
	for _, row := range about.Trials {
		for _, p := range row.Phases {
			if sum := p.Fresh + p.Stale + p.Waited + p.Failed; p.Pages > 0 && math.Abs(sum-100) > 1e-6 {
				t.Errorf("%s, %s, %s: the parts add up to %v %%", row.Event, row.Way, p.Name, sum)
			}
		}
	}
	var b strings.Builder
	r.Summary(&b)
	return about.Trials, b.String()
}

// The tour's point: by hand and with mayfly, before, during and after everything expires.
func TestBeforeDuringAndAfter(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler, s *shop.Shop, r *dashboard.Recorder) {
		next := s.Settings()
		next.Shoppers, next.TTL = 40, time.Minute
		if err := s.Set(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if err := r.Tour(t.Context(), 20*time.Second); err != nil {
			t.Fatal(err)
		}
		all, text := table(t, s, r)
		if len(all) != 2 || all[0].Way != "by hand" || all[1].Way != "mayfly" || all[0].Event != "everything expires" || all[1].Event != all[0].Event {
			t.Fatalf("%+v", all)
		}
		hand, ours := all[0].Phases, all[1].Phases
		for i, name := range []string{"before", "during", "after"} {
			for _, p := range []struct{ Name string }{{hand[i].Name}, {ours[i].Name}} {
				if p.Name != name {
					t.Errorf("phase %d is %q", i, p.Name)
				}
			}
			if hand[i].Pages == 0 || ours[i].Pages == 0 || hand[i].Seconds < 2 || ours[i].Seconds > 4 {
				t.Errorf("%s: %+v, %+v", name, hand[i], ours[i])
			}
		}
		if hand[0].Queries+hand[2].Queries != 0 || ours[0].Queries+ours[2].Queries > 2 /* early refreshes */ || hand[1].Queries <= ours[1].Queries || ours[1].Queries < 8 {
			t.Errorf("queries: %+v, %+v", hand, ours)
		}
		// A query from just before a phase may end in it.
		if max(hand[0].Waited, hand[2].Waited) > 2 || hand[1].Waited < 2 || hand[1].P99 < 190 || hand[0].P99 > 1 || hand[1].P50 > 1 {
			t.Errorf("by hand: %+v", hand)
		}
		if !strings.Contains(text, "\neverything expires ") || strings.Count(text, "before, ") != 2 || strings.Count(text, "during, ") != 2 {
			t.Errorf("as text:\n%s", text)
		}
	})
}

// An event that lasts, such as a killed Redis or a slow database, has a phase until its end. A strategy is named by what it lacks.
func TestWhatLasts(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler, s *shop.Shop, r *dashboard.Recorder) {
		next := s.Settings()
		next.Mayfly, next.Lease, next.Pages, next.Shoppers = true, false, false, 8
		if err := s.Set(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		pressed := func(b panel.Button, then time.Duration) {
			t.Helper()
			says, err := s.Press(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			r.Pressed(b, says)
			pass(then)
		}
		pass(13 * time.Second)
		pressed(panel.KillRedis, 7*time.Second)
		pressed(panel.KillRedis, 13*time.Second)
		pressed(panel.SlowDatabase, 21*time.Second)
		pressed(panel.TwoMore, time.Second)
		pressed(panel.SlowDatabase, 3*time.Second) // and the recording ends
		all, text := table(t, s, r)
		if len(all) != 3 || all[0].Event != "Redis killed" || all[0].Way != "mayfly without lease, pages" || all[1].Event != "the database is slow" || all[2].Event != all[1].Event {
			t.Fatalf("%+v", all)
		}
		for i, want := range [][3]float64{{10, 7, 10}, {10, 10, 10}, {0.5, 3, 0}} {
			for j, seconds := range want {
				if got := all[i].Phases[j].Seconds; math.Abs(got-seconds) > 0.3 {
					t.Errorf("%s, %s: %v s, want %v", all[i].Event, all[i].Phases[j].Name, got, seconds)
				}
			}
		}
		if p := all[0].Phases; p[1].Waited < 85 || p[0].Waited > 50 || p[2].Waited > 50 {
			t.Errorf("Redis killed: %+v", p)
		}
		if !strings.Contains(text, "\nmayfly without lease, pages\n") || !strings.Contains(text, "nobody asked for a page") {
			t.Errorf("as text:\n%s", text)
		}
	})
}
