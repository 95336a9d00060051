package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/ttlaudit"
)

// progress shows how far an audit has come: on a terminal in one line that it rewrites, elsewhere in a new line now and then.
type progress struct {
	to       io.Writer
	terminal bool
	every    time.Duration
	shown    time.Time
	first    ttlaudit.Progress // the first one shown: rates count from there
	began    bool
}

func newProgress(to io.Writer, every time.Duration) *progress {
	p := &progress{to: to, terminal: isTerminal(to), every: every, shown: time.Now()}
	if p.terminal {
		p.every = 100 * time.Millisecond
	}
	return p
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show prints the progress, at most once in p.every.
func (p *progress) show(now ttlaudit.Progress) {
	if !p.began {
		p.first, p.began = now, true
	}
	if time.Since(p.shown) < p.every {
		return
	}
	p.shown = time.Now()
	line := p.line(now)
	if p.terminal {
		fmt.Fprint(p.to, "\r\033[K", line)
		return
	}
	fmt.Fprintln(p.to, line)
}

// line formats the progress: a bar if the number of keys is known, the keys done, the rate, and the time left.
func (p *progress) line(now ttlaudit.Progress) string {
	rate := 0.0
	if took := now.Took - p.first.Took; took > 0 {
		rate = float64(now.Keys-p.first.Keys) / took.Seconds()
	}
	var b strings.Builder
	if now.Of > 0 {
		share := min(float64(now.Keys)/float64(now.Of), 1)
		if p.terminal {
			const width = 24
			full := int(share * width)
			b.WriteString(strings.Repeat("█", full) + strings.Repeat("░", width-full) + " ")
		}
		fmt.Fprintf(&b, "%.0f %%, ", share*100)
	}
	fmt.Fprintf(&b, "%d keys", now.Keys)
	if now.NoTTL > 0 {
		fmt.Fprintf(&b, ", %d without TTL", now.NoTTL)
	}
	if now.Servers > 1 {
		fmt.Fprintf(&b, ", server %d of %d", min(now.Done+1, now.Servers), now.Servers)
	}
	if rate > 0 {
		fmt.Fprintf(&b, ", %.0f keys/s", rate)
		if left := float64(now.Of - now.Keys); left > 0 {
			fmt.Fprintf(&b, ", %v left", time.Duration(left/rate*float64(time.Second)).Round(time.Second))
		}
	}
	return b.String()
}

// clear removes the line from a terminal.
func (p *progress) clear() {
	if p.terminal && p.began {
		fmt.Fprint(p.to, "\r\033[K")
		p.began = false
	}
}
