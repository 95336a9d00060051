// Deadplot draws docs/dead-keys.svg: how many dead keys are held during a burst of a million deadlines, by the deadline
// index and by the documented cycle, beside the bound that the documentation of EXPIRE states. Time is virtual and chance is
// seeded, so the drawing is the same each time. The figures go to standard error.
//
//	cd bench && go run ./deadplot > ../docs/dead-keys.svg
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/mayflycache/mayfly/internal/expiry"
)

func main() {
	runs := simulateAll()
	if _, err := os.Stdout.Write(draw(runs)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	table(os.Stderr, runs)
}

// run is an outcome and how it is drawn.
type run struct {
	name  string
	class string
	outcome
}

func simulateAll() []run {
	return []run{
		{"deadline index", "index", simulate(byIndex())},
		{"documented cycle, 25 %", "cycle", simulate(byCycle(expiry.Cycle{}))},
		{"the same, 10 %", "modern", simulate(byCycle(expiry.Cycle{Repeat: 0.10}))},
	}
}

func table(w io.Writer, runs []run) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tmost dead at once\tof those held then\toverdue, mean\toverdue, max\tall gone after the last\t100 ms looks above the bound")
	for _, r := range runs {
		worst, above := r.worst(), 0
		for _, l := range r.looks {
			if l.dead > l.bound() {
				above++
			}
		}
		fmt.Fprintf(t, "%s\t%d\t%.0f %%\t%v\t%v\t%v\t%d of %d\n", r.name, worst.dead, 100*float64(worst.dead)/float64(worst.held),
			overdueMean(r.figures).Round(time.Millisecond), r.figures.OverdueMax, time.Duration(r.emptyAt-r.lastEnd)*time.Millisecond, above, len(r.looks))
	}
	t.Flush()
}

// overdueMean returns the mean time from deadline to reaping; zero if nothing was reaped.
func overdueMean(f expiry.Figures) time.Duration {
	return f.OverdueSum / time.Duration(max(f.Reaped, 1))
}

// The drawing area, and what one unit of it stands for.
const (
	width, height            = 760, 380
	left, right, top, bottom = 64, 16, 44, 44
	msAcross                 = 25_000
	keysUp                   = 800_000
)

func x(ms int) float64   { return left + float64(ms)*(width-left-right)/msAcross }
func y(dead int) float64 { return height - bottom - float64(dead)*(height-top-bottom)/keysUp }

func draw(runs []run) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="12">
<title>Dead keys held during a burst of a million deadlines</title>
<style>
text { fill: #333 } .axis { stroke: #ccc; fill: none } path { fill: none; stroke-width: 2 }
.index { stroke: #0a7d4f } .cycle { stroke: #c2410c } .modern { stroke: #b98900 } .bound { stroke: #777; stroke-dasharray: 5 4 }
text.index, text.cycle, text.modern, text.bound { stroke: none; font-weight: 600 }
text.index { fill: #0a7d4f } text.cycle { fill: #c2410c } text.modern { fill: #8f6a00 } text.bound { fill: #666 }
@media (prefers-color-scheme: dark) {
text { fill: #ddd } .axis { stroke: #555 } .index { stroke: #35c98b } .cycle { stroke: #ff8a5c } .modern { stroke: #e8c14a } .bound { stroke: #aaa }
text.index { fill: #35c98b } text.cycle { fill: #ff8a5c } text.modern { fill: #e8c14a } text.bound { fill: #aaa }
}
</style>
`, width, height)
	fmt.Fprintf(&b, "<text x=\"%d\" y=\"18\">Dead keys held: %d keys with lives of 1 to 10 s, %d written each second for %d s; nobody reads</text>\n",
		left, keys, writes, writeFor/1000)
	for dead := 0; dead <= keysUp; dead += 200_000 {
		fmt.Fprintf(&b, "<path class=\"axis\" stroke-width=\"1\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d k</text>\n",
			left, y(dead), width-right, left-6, y(dead)+4, dead/1000)
	}
	for ms := 0; ms <= msAcross; ms += 5000 {
		fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d s</text>\n", x(ms), height-bottom+18, ms/1000)
	}
	line := func(class string, looks []look, of func(look) int) {
		fmt.Fprintf(&b, "<path class=%q d=\"", class)
		for i, l := range looks {
			fmt.Fprintf(&b, "%c%.1f %.1f", "LM"[btoi(i == 0)], x(l.ms), y(of(l)))
		}
		b.WriteString("\"/>\n")
	}
	dead := func(l look) int { return l.dead }
	for i := len(runs) - 1; i >= 0; i-- {
		line(runs[i].class, runs[i].looks, dead)
	}
	documented := runs[1]
	line("bound", documented.looks, look.bound)

	label := func(class string, ms, at int, text string) {
		fmt.Fprintf(&b, "<text class=%q x=\"%.1f\" y=\"%.1f\">%s</text>\n", class, x(ms), y(at), text)
	}
	w := documented.worst()
	label("cycle", w.ms+1200, w.dead+15_000, fmt.Sprintf("%s: %.0f %% of those held are dead", documented.name, 100*float64(w.dead)/float64(w.held)))
	label("modern", 7_000, 500_000, runs[2].name)
	label("bound", 17_000, 60_000, "the bound: 25 % of those held")
	label("index", 2_500, 14_000, fmt.Sprintf("%s: %d at most", runs[0].name, runs[0].worst().dead))
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
