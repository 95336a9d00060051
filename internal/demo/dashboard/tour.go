package dashboard

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// ways are the two ways that the tour shows, in order.
var ways = [2]string{"by hand: GET, else query and SET EX", "mayfly"}

// Tour shows the shop by hand and then with mayfly. Half way through each, everything expires. It returns at the end, or when ctx ends.
func (r *Recorder) Tour(ctx context.Context, lasts time.Duration) error {
	for i := range ways {
		next := r.shop.Settings()
		next.Mayfly = i == 1
		if err := r.shop.Set(ctx, next); err != nil {
			return err
		}
		r.Mark([...]string{"by hand", "mayfly"}[i])
		if !pause(ctx, lasts/4) {
			return nil
		}
		says, err := r.shop.Press(ctx, panel.ExpireEverything)
		if err != nil {
			return err
		}
		r.Pressed(panel.ExpireEverything, says)
		if !pause(ctx, lasts/4) {
			return nil
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// settling is the number of moments after a change that still belong to the time before: callers who had asked by then are still waiting.
const settling = int(2 * time.Second / Every)

// Summary writes the results by hand and with mayfly: a row for each way, the figures before, during and after each action, and the results of
// the crowd if there was one.
func (r *Recorder) Summary(w io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	type row struct {
		moments, worst         int
		pages, failed, queries float64
		p99, longest           float64
	}
	var rows [2]row
	var crowd [2]struct{ answered, asked float64 } // with admission, and without
	way, skip := int64(0), 0
	for i, m := range r.moments {
		if m.Limit != 0 {
			c := &crowd[0]
			if m.Limit < 0 {
				c = &crowd[1]
			}
			c.answered += m.Answered * Every.Seconds()
			c.asked += (m.Answered + m.GivenUp) * Every.Seconds()
		}
		if m.Settings != nil && m.Settings["mayfly"] != way {
			way = m.Settings["mayfly"]
			if i > 0 {
				skip = settling
			}
		}
		if skip--; skip >= 0 {
			continue
		}
		n := &rows[way]
		n.moments++
		n.pages += m.Pages * Every.Seconds()
		n.failed += m.Failed * Every.Seconds()
		n.queries += m.Queries * Every.Seconds()
		n.worst = max(n.worst, m.Worst)
		n.p99 += m.P99
		n.longest = max(n.longest, m.P99)
	}
	fmt.Fprintf(w, "%-36s %7s %8s %14s %14s %10s %10s %7s\n", "", "pages", "queries", "a second", "of one at once", "p99, mean", "p99, worst", "errors")
	for i, n := range rows {
		if n.moments == 0 {
			continue
		}
		ms := func(f float64) string {
			return time.Duration(f * float64(time.Millisecond)).Round(100 * time.Microsecond).String()
		}
		fmt.Fprintf(w, "%-36s %7.0f %8.0f %14.1f %14d %10s %10s %7.0f\n", ways[i], n.pages, n.queries, n.queries/(float64(n.moments)*Every.Seconds()),
			n.worst, ms(n.p99/float64(n.moments)), ms(n.longest), n.failed)
	}
	writeTrials(w, r.trialsLocked())
	for i, c := range crowd {
		if c.asked > 0 {
			fmt.Fprintf(w, "the crowd, %s: %.0f of %.0f answered\n", [...]string{"its loads admitted", "without admission"}[i], c.answered, c.asked)
		}
	}
}
