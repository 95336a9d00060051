package lab

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"time"
)

// The drawing has a row for each strategy. The middle of the row shows how many loads ran at each moment, on one scale for all rows.
const (
	width            = 960
	rowHeight        = 58
	head, foot       = 74, 34
	middle, end      = 226, 620 // of the row, from left to right; then the right edges of the figures
	loadsAt, mostAt  = 730, 798
	p99At, oldestAt  = 880, 960
	bars             = 240 // moments drawn
	headroom, ground = 8, 6
)

const style = `
text { fill: #24292f } .quiet { fill: #57606a } .number { font-weight: 600; font-variant-numeric: tabular-nums }
.hand { fill: #c2410c } .ours { fill: #0a7d4f } .line { stroke: #d0d7de } .end { stroke: #d0d7de; stroke-dasharray: 2 4 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .quiet { fill: #9198a1 } .hand { fill: #ff8a5c } .ours { fill: #35c98b } .line, .end { stroke: #3d444d }
}
`

// SVG draws the figures as a self-contained picture, for light and dark pages.
func SVG(w io.Writer, r Result) error {
	var b bytes.Buffer
	height := head + len(r.Figures)*rowHeight + foot
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="-apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif" font-size="14" role="img">`+"\n<title>%s</title>\n<style>%s</style>\n",
		width, height, html.EscapeString(r.Setup.String()), style)
	text := func(x, y float64, class, anchor, s string) {
		fmt.Fprintf(&b, "<text x=\"%.0f\" y=\"%.0f\" class=%q text-anchor=%q>%s</text>\n", x, y, class, anchor, html.EscapeString(s))
	}
	text(0, 18, "", "start", r.Setup.String())
	text(middle, head-12, "quiet", "start", "loads that run at the same time, all on one scale")
	text(loadsAt, head-12, "quiet", "end", "loads per TTL")
	text(mostAt, head-12, "quiet", "end", "at once")
	text(p99At, head-12, "quiet", "end", "p99")
	text(oldestAt, head-12, "quiet", "end", "oldest")
	most, lasts := 1, time.Duration(1)
	for _, f := range r.Figures {
		most, lasts = max(most, f.Most), max(lasts, f.Ran)
	}
	for n, f := range r.Figures {
		top := float64(head + n*rowHeight)
		base := top + rowHeight - ground
		class := "hand"
		if r.Setup.Strategies[n].Lease {
			class = "ours"
		}
		text(0, base-14, "", "start", f.Strategy)
		for at := r.Setup.TTL; at < lasts; at += r.Setup.TTL {
			x := middle + float64(at)/float64(lasts)*(end-middle)
			fmt.Fprintf(&b, "<path class=\"end\" d=\"M%.1f %.1fV%.1f\"/>", x, top+headroom, base)
		}
		fmt.Fprintf(&b, "<path class=\"line\" d=\"M%d %.1fH%d\"/>\n<path class=%q d=\"", middle, base, end, class)
		step := float64(end-middle) / bars
		for i, running := range f.running(lasts, bars) {
			if running > 0 {
				tall := max(2, float64(running)/float64(most)*(rowHeight-headroom-ground))
				fmt.Fprintf(&b, "M%.1f %.1fv-%.1fh%.1fv%.1fz", middle+float64(i)*step, base, tall, step, tall)
			}
		}
		b.WriteString("\"/>\n")
		text(mostAt, base-14, "number", "end", fmt.Sprint(f.Most))
		text(loadsAt, base-14, class+" number", "end", fmt.Sprintf("%.1f", f.PerTTL))
		text(p99At, base-14, "number", "end", Short(f.P99))
		text(oldestAt, base-14, "number", "end", Short(f.Oldest))
	}
	text(middle, float64(height-10), "quiet", "start", fmt.Sprintf("%v, after the first load; dotted: each TTL", lasts.Round(100*time.Millisecond)))
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// running returns for each of n moments the greatest number of loads that ran in it.
func (f Figures) running(lasts time.Duration, n int) []int {
	counts := make([]int, n)
	for _, s := range f.loads {
		from := int(s.from * time.Duration(n) / lasts)
		to := int(s.to * time.Duration(n) / lasts)
		for i := max(from, 0); i <= to && i < n; i++ {
			counts[i]++
		}
	}
	for i := range counts { // neighbours that only touch a moment are counted in it: the result is never more than Most
		counts[i] = min(counts[i], f.Most)
	}
	return counts
}

// HTML writes the picture as a page, with the figures as a table for readers who cannot see it.
func HTML(w io.Writer, r Result) error {
	var picture bytes.Buffer
	if err := SVG(&picture, r); err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>mayfly lab</title>
<style>body { font: 16px/1.5 -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem } svg { width: 100%%; height: auto }
.wide { overflow-x: auto } table { border-collapse: collapse } th, td { padding: .3em .8em; text-align: right } th:first-child { text-align: left } tr + tr { border-top: 1px solid #8884 }</style>
<h1>One hot key</h1>
%s
<div class="wide"><table><tr><th scope="col">strategy<th scope="col">loads per TTL<th scope="col">at once<th scope="col">reads<th scope="col">p50<th scope="col">p99<th scope="col">longest<th scope="col">oldest value
`, picture.String())
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "<tr><th scope=\"row\">%s<td>%.1f<td>%d<td>%d<td>%s<td>%s<td>%s<td>%s\n", html.EscapeString(f.Strategy), f.PerTTL, f.Most, f.Reads,
			Short(f.P50), Short(f.P99), Short(f.Max), Short(f.Oldest))
	}
	b.WriteString("</table></div>\n")
	if r.Partial {
		b.WriteString("<p>Stopped early: the last strategy did not run to its end.</p>\n")
	}
	b.WriteString("</html>\n")
	_, err := w.Write(b.Bytes())
	return err
}
