package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/ttlaudit"
)

// progress tells how far an audit has come: on a terminal by one line that changes, elsewhere by a line now and then.
type progress struct {
	to       io.Writer
	terminal bool
	every    time.Duration
	shown    time.Time
	first    ttlaudit.Progress // when it was told first: rates are since then
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

// show tells of p, if it is time.
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

// line is what is shown: a bar, if it is known how many keys there are, how many were looked at, how fast, for how long yet.
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

// clear takes the line away.
func (p *progress) clear() {
	if p.terminal && p.began {
		fmt.Fprint(p.to, "\r\033[K")
		p.began = false
	}
}
