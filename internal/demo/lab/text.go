package lab

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Text writes the figures as a table, with a bar for the loads.
func Text(w io.Writer, r Result) {
	const most = 24
	widest, top := 0, 0.0
	for _, f := range r.Figures {
		widest, top = max(widest, len([]rune(f.Strategy))), max(top, f.PerTTL)
	}
	fmt.Fprintf(w, "%-*s  %-*s  %8s  %8s  %8s  %8s  %8s\n", widest, "", most+8, "loads per TTL", "at once", "p50", "p99", "longest", "oldest")
	for _, f := range r.Figures {
		bar := strings.Repeat("█", int(math.Round(most*f.PerTTL/max(top, 1))))
		if bar == "" {
			bar = "▏"
		}
		loads := fmt.Sprintf("%s %.1f", bar, f.PerTTL)
		fmt.Fprintf(w, "%-*s  %s%s  %8d  %8s  %8s  %8s  %8s\n", widest, f.Strategy, loads, strings.Repeat(" ", max(0, most+8-len([]rune(loads)))),
			f.Most, Short(f.P50), Short(f.P99), Short(f.Max), Short(f.Oldest))
		if f.Failed > 0 {
			fmt.Fprintf(w, "%-*s  %d Gets failed\n", widest, "", f.Failed)
		}
	}
	if r.Partial {
		fmt.Fprintf(w, "stopped early: %d of %d strategies, the last not to its end\n", len(r.Figures), len(r.Setup.Strategies))
	}
}

// Short formats a duration with about three digits.
func Short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(100 * time.Nanosecond).String()
}
