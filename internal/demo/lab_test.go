// Package demo_test holds the tests of panel, strategy and lab, one file each. They are one program, as it takes longer to link a
// program than to run them.
package demo_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/demo/lab"
	"github.com/mayflycache/mayfly/internal/demo/strategy"
	"github.com/mayflycache/mayfly/redistest"
)

// setup is small, on an engine of its own. In a bubble all figures are of the protocols, not of the machine.
func setup(t *testing.T) lab.Setup {
	srv := redistest.Start(t)
	return lab.Setup{
		Strategies: strategy.All, Processes: 4, Callers: 20, Pause: 50 * time.Millisecond, Load: 100 * time.Millisecond, TTL: time.Second, Expiries: 5,
		Connect: func() *redis.Client {
			o := *srv.Client().Options()
			return redis.NewClient(&o)
		},
	}
}

func TestTheLadder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setup(t)
		var told float64
		r, err := lab.Run(t.Context(), s, func(done float64, _ string) {
			if done < told {
				t.Errorf("progress went from %v to %v", told, done)
			}
			told = done
		})
		if err != nil || r.Partial || told != 1 || len(r.Figures) != len(strategy.All) {
			t.Fatalf("%d figures, partial %v, progress %v: %v", len(r.Figures), r.Partial, told, err)
		}
		plain, guide, linear, xfetch, lease, all := r.Figures[0], r.Figures[1], r.Figures[2], r.Figures[3], r.Figures[4], r.Figures[5]
		callers := float64(s.Processes * s.Callers)
		for _, check := range []struct {
			promise string
			holds   bool
		}{
			{"by hand, most callers load at each end", plain.PerTTL > callers/2 && plain.Most > int(callers/2)},
			{"jitter does not help one key", guide.PerTTL > callers/2},
			{"the linear rule loads again and again, and serves young values", linear.PerTTL > 5 && linear.Oldest < s.TTL},
			{"XFetch loads less than no rule, and several at once", xfetch.PerTTL < plain.PerTTL/2 && xfetch.Most > 1},
			{"the lease loads once per TTL, one at a time", lease.PerTTL <= 1 && lease.PerTTL > 0.7 && lease.Most == 1},
			{"but at its end callers wait", lease.P99 >= s.Load/2},
			{"mayfly loads one at a time, and few", all.PerTTL < plain.PerTTL/10 && all.PerTTL < 3 && all.Most == 1},
			{"and nobody waits", all.Max < s.Load/2},
			{"nothing lives longer than its TTL, a load, and its jitter", all.Oldest <= s.TTL+s.TTL/10+s.Load && plain.Oldest <= s.TTL+s.Load+10*time.Millisecond},
		} {
			if !check.holds {
				t.Errorf("not so: %s", check.promise)
			}
		}
		for _, f := range r.Figures {
			if f.Failed > 0 || f.Ran != s.Lasts()/time.Duration(len(s.Strategies)) {
				t.Errorf("%s: %d failed, ran for %v", f.Strategy, f.Failed, f.Ran)
			}
		}
		if t.Failed() {
			var b bytes.Buffer
			lab.Text(&b, r)
			t.Log("\n" + b.String())
		}
	})
}

func TestAnEarlyEndGivesAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setup(t)
		ctx, cancel := context.WithTimeout(t.Context(), 7500*time.Millisecond)
		defer cancel()
		r, err := lab.Run(ctx, s, nil)
		if err != nil || !r.Partial || len(r.Figures) != 2 || r.Figures[1].Ran > 2500*time.Millisecond {
			t.Fatalf("%d figures, partial %v: %v", len(r.Figures), r.Partial, err)
		}
		// How many ends the part had is the jitter's to say: its figure is per TTL that ran, not per TTL that was asked for.
		if f := r.Figures[1]; f.Loads < 40 || math.Abs(f.PerTTL*f.Ran.Seconds()/s.TTL.Seconds()-float64(f.Loads)) > 0.5 {
			t.Errorf("%d loads in %v, and %.1f per TTL of %v", f.Loads, f.Ran, f.PerTTL, s.TTL)
		}
		var text, page bytes.Buffer
		lab.Text(&text, r)
		if !strings.Contains(text.String(), "stopped early: 2 of 6") {
			t.Error(text.String())
		}
		if err := lab.HTML(&page, r); err != nil || !strings.Contains(page.String(), "Stopped early") {
			t.Error(err)
		}
	})
}

// The picture is XML that any viewer takes, whatever was found.
func TestThePicture(t *testing.T) {
	for _, figures := range [][]lab.Figures{nil, {{Strategy: "a < b & c", PerTTL: 3, Ran: time.Second, Most: 3}}} {
		r := lab.Result{Setup: lab.Setup{Strategies: strategy.All, TTL: time.Second}, Figures: figures}
		var b bytes.Buffer
		if err := lab.SVG(&b, r); err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(&b)
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234: "1.2µs", 12_345_678: "12ms", 1_234_567: "1.2ms", 1_234_567_890: "1.23s", 61 * time.Second: "1m1s", 0: "0s",
	} {
		if got := lab.Short(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func Example_labText() {
	lab.Text(os.Stdout, lab.Result{Figures: []lab.Figures{
		{Strategy: "by hand", PerTTL: 511.5, Most: 512, P50: 310 * time.Microsecond, P99: 104 * time.Millisecond, Max: 160 * time.Millisecond, Oldest: 1100 * time.Millisecond},
		{Strategy: "mayfly", PerTTL: 1.2, Most: 1, P50: 900, P99: 2 * time.Millisecond, Max: 4 * time.Millisecond, Oldest: 980 * time.Millisecond},
	}})
	// Output:
	// loads per TTL                      at once       p50       p99   longest    oldest
	// by hand  ████████████████████████ 511.5         512     310µs     104ms     160ms      1.1s
	// mayfly   ▏ 1.2                                    1     900ns       2ms       4ms     980ms
}
