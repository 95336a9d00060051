package dashboard

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// trial is something that was done to the shop, with the figures before, during and after.
type trial struct {
	Event  string   `json:"event"`
	Way    string   `json:"way"` // the strategy: by hand, or mayfly with or without some of its patterns
	Phases [3]phase `json:"phases"`
}

// phase is the figures of a stretch of time. Shares are per cent of the requested pages, and add up to 100.
type phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Pages   int64   `json:"pages"`
	Fresh   float64 `json:"fresh"` // from memory or Redis: the hit ratio
	Stale   float64 `json:"stale"`
	Waited  float64 `json:"waited"`
	Failed  float64 `json:"failed"`
	Errors  int64   `json:"errors"`
	Queries int64   `json:"queries"`
	P50     float64 `json:"p50"` // ms
	P99     float64 `json:"p99"`
}

// The longest phases. A lasting change, such as a killed Redis, has a phase as long as it lasts.
const (
	besides = int(10 * time.Second / Every) // before and after
	acute   = int(4 * time.Second / Every)  // during
	trials  = 24                            // the latest ones, which the table shows
)

// phaseOf adds up moments.
func phaseOf(name string, all []moment) phase {
	p := phase{Name: name, Seconds: float64(len(all)) * Every.Seconds()}
	var got panel.Got
	took := make(panel.Took)
	for _, m := range all {
		f := &m.figures
		p.Pages += f.Pages
		p.Queries += f.Queries
		got.FromMemory += f.FromMemory
		got.FromRedis += f.FromRedis
		got.Stale += f.Stale
		got.Waited += f.Waited
		got.Failed += f.Failed
		took.AddAll(f.Took)
	}
	share := func(n int64) float64 { return 100 * float64(n) / float64(max(1, p.Pages)) }
	p.Fresh, p.Stale, p.Waited, p.Failed, p.Errors = share(got.FromMemory+got.FromRedis), share(got.Stale), share(got.Waited), share(got.Failed), got.Failed
	p.P50, p.P99 = ms(took.At(0.50)), ms(took.At(0.99))
	return p
}

// trialsLocked returns what was done, grouped by kind, so that strategies stand next to each other.
func (r *Recorder) trialsLocked() (all []trial) {
	way, last := "", 0 // when something was last done
	byEvent := make(map[string][]trial)
	var events []string
	for i, m := range r.moments {
		if m.way != "" {
			way = m.way
		}
		if m.event != "" {
			if _, ok := byEvent[m.event]; !ok {
				events = append(events, m.event)
			}
			from := min(last+settling, (last+i)/2) // pages requested before a change are not part of what follows it
			byEvent[m.event] = append(byEvent[m.event], trial{m.event, way, r.phasesLocked(from, i)})
		}
		if m.Mark != "" {
			last = i
		}
	}
	for _, e := range events {
		all = append(all, byEvent[e]...)
	}
	return all[max(0, len(all)-trials):]
}

// phasesLocked returns the figures before, during and after the moment at, when something was done. Between from and at nothing was.
func (r *Recorder) phasesLocked(from, at int) [3]phase {
	next := func(i int) int {
		for i++; i < len(r.moments) && r.moments[i].Mark == ""; i++ {
		}
		return min(i, len(r.moments))
	}
	lasts := func(i int) bool { // a figure may have been read just before the mark next to it
		return i < len(r.moments) && (r.moments[i].figures.Redis != panel.Up || r.moments[i].figures.Slow > 0)
	}
	end, until := at+1, next(at)
	if lasts(at) || lasts(at+1) {
		for end < until && lasts(end) {
			end++
		}
		if end == until && end < len(r.moments) && r.moments[end].event == "" { // Redis is back
			for until = next(end); end < until && lasts(end); {
				end++
			}
		}
	} else {
		end = at + max(1, min(acute, (until-at)/2))
	}
	return [3]phase{
		phaseOf("before", r.moments[max(from, at-besides):at]),
		phaseOf("during", r.moments[at:end]),
		phaseOf("after", r.moments[end:min(until, end+besides)]),
	}
}

// strategyOf describes a strategy in words.
func strategyOf(s panel.Settings) string {
	if !s.Mayfly {
		return "by hand"
	}
	var without []string
	for _, name := range switches {
		if on := knobs(&s)[name].(*bool); !*on {
			without = append(without, name)
		}
	}
	if len(without) == 0 {
		return "mayfly"
	}
	return "mayfly without " + strings.Join(without, ", ")
}

// writeTrials writes the table of trials as text.
func writeTrials(w io.Writer, all []trial) {
	event := ""
	for _, t := range all {
		if t.Event != event {
			event = t.Event
			fmt.Fprintf(w, "\n%-36s %10s %7s %8s %7s %9s %10s %10s\n", event, "fresh hits", "stale", "waited", "errors", "queries/s", "p50", "p99")
		}
		if len(t.Way) > 20 {
			fmt.Fprintln(w, t.Way)
		}
		for i, p := range t.Phases {
			way := t.Way
			if i > 0 || len(way) > 20 {
				way = ""
			}
			fmt.Fprintf(w, "%-20s %-15s", way, fmt.Sprintf("%s, %.3g s", p.Name, p.Seconds))
			if p.Pages == 0 {
				fmt.Fprintln(w, "  nobody asked for a page")
				continue
			}
			fmt.Fprintf(w, " %8.1f %% %5.1f %% %6.1f %% %7d %9.1f %10s %10s\n", p.Fresh, p.Stale, p.Waited, p.Errors, float64(p.Queries)/p.Seconds, shown(p.P50), shown(p.P99))
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// shown formats a duration in ms for people.
func shown(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}
