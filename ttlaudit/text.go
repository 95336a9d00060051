package ttlaudit

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// mostRows bounds the rows of a table for people; the JSON has all rows.
const mostRows = 20

// WriteText writes the report for people: what was covered, tables with bars, and the largest keys without a TTL.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	r.headline(&b)
	r.patternTable(&b)
	r.lengths(&b)
	if len(r.Largest) > 0 {
		b.WriteString("\nLARGEST WITHOUT TTL, of those whose size was asked for\n")
		for _, k := range r.Largest {
			fmt.Fprintf(&b, "%10s  %-7s  %s\n", size(k.Bytes), k.Type, printable(k.Key))
		}
	}
	if h := r.Hashes; h.Unknown != "" {
		fmt.Fprintf(&b, "\nHash fields were not looked at: %s\n", h.Unknown)
	} else if h.WithTTL > 0 {
		fmt.Fprintf(&b, "\nHASH FIELDS: of %s in %s hashes, %s have a TTL; %s of these hashes have no TTL and end with their fields\n",
			number(h.Fields), number(h.Looked), number(h.WithTTL), number(h.EndByFields))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) headline(b *strings.Builder) {
	match := ""
	if r.Match != "" {
		match = " that match " + printable(r.Match)
	}
	rate := float64(r.Keys) / max(r.Took.Seconds(), 0.001)
	fmt.Fprintf(b, "%s keys%s, %s without TTL (%s), %s with more than %s; %v at %s keys/s\n", number(r.Keys), match, number(r.NoTTL),
		percent(r.NoTTL, r.Keys), number(r.TooLong), span(r.Longest), r.Took.Round(100*time.Millisecond), number(int64(rate)))
	if r.Bytes != nil {
		fmt.Fprintf(b, "%s in all, %s of it without TTL\n", about(r.Bytes), about(r.NoTTLBytes))
	}
	if e := r.Estimated; e.Keys > 0 {
		fmt.Fprintf(b, "a sample: of all %s keys %s are without TTL, and %s have more than %s, with a probability of 95 %%\n",
			number(e.Keys), interval(e.NoTTL), interval(e.TooLong), span(r.Longest))
	}
	if !r.Complete {
		covered := 0
		for _, s := range r.Servers {
			if s.Covered {
				covered++
			}
		}
		fmt.Fprintf(b, "PARTIAL: %d of %d servers were covered\n", covered, len(r.Servers))
		for _, s := range r.Servers {
			if s.Covered {
				continue
			}
			of := ""
			if s.Of > 0 {
				of = " of about " + number(s.Of)
			}
			fmt.Fprintf(b, "  %s: %s%s keys: %s\n", s.Addr, number(s.Keys), of, cmp.Or(s.Error, "interrupted"))
		}
	}
	if r.Resharded || r.Moved > 0 {
		b.WriteString("slots moved meanwhile: keys may have been missed, or counted twice\n")
	}
}

func (r *Report) patternTable(b *strings.Builder) {
	if len(r.Patterns) == 0 {
		return
	}
	rows := r.Patterns[:min(len(r.Patterns), mostRows)]
	width := len("PATTERN")
	for _, p := range rows {
		width = max(width, min(utf8.RuneCountInString(printable(p.Name)), 48))
	}
	fmt.Fprintf(b, "\n%-*s  %13s  %13s  %-10s  %10s  %13s\n", width, "PATTERN", "KEYS", "WITHOUT TTL", "", "BYTES OF IT", "TOO LONG")
	for _, p := range rows {
		bytes := "-"
		if p.NoTTLBytes != nil {
			bytes = size(p.NoTTLBytes.Value)
		}
		fmt.Fprintf(b, "%-*s  %13s  %13s  %s  %11s  %13s\n", width, printable(p.Name), number(p.Keys), number(p.NoTTL), bar(p.NoTTL, rows[0].NoTTL),
			bytes, number(p.TooLong))
	}
	if more := len(r.Patterns) - len(rows); more > 0 {
		fmt.Fprintf(b, "and %d patterns more\n", more)
	}
}

func (r *Report) lengths(b *strings.Builder) {
	most := r.NoTTL
	for _, t := range r.TTLs {
		most = max(most, t.Keys)
	}
	if most == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-12s  %13s\n", "TIME LEFT", "KEYS")
	row := func(name string, keys int64) {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-12s  %13s  %s", name, number(keys), bar(keys, most)), " ") + "\n")
	}
	for i, t := range r.TTLs {
		name := "more"
		if i < len(r.TTLs)-1 {
			name = "to " + span(t.UpTo)
		}
		row(name, t.Keys)
	}
	row("no end", r.NoTTL)
	var types []string
	for _, name := range slices.Sorted(maps.Keys(r.Types)) {
		types = append(types, number(r.Types[name])+" "+name)
	}
	fmt.Fprintf(b, "\nTYPES: %s\n", strings.Join(types, ", "))
}

// bar draws n out of most in ten places; anything above zero shows.
func bar(n, most int64) string {
	const places = 10
	eighths := 0
	if most > 0 {
		eighths = int(float64(n) / float64(most) * places * 8)
	}
	if n > 0 {
		eighths = max(eighths, 1)
	}
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return text + strings.Repeat(" ", places-utf8.RuneCountInString(text))
}

// number separates thousands.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func percent(n, of int64) string {
	if of == 0 {
		return "0 %"
	}
	return strconv.FormatFloat(100*float64(n)/float64(of), 'f', 1, 64) + " %"
}

// size writes bytes.
func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n)/1024, 0
	for ; x >= 1023.95 && unit < 5; unit++ {
		x /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", x, "KMGTPE"[unit])
}

// about writes an estimate of bytes.
func about(e *Estimate) string {
	if e.Exact() {
		return size(e.Value)
	}
	return fmt.Sprintf("about %s (%s to %s)", size(e.Value), size(e.Low), size(e.High))
}

func interval(e Estimate) string {
	if e.Exact() {
		return number(e.Value)
	}
	return fmt.Sprintf("%s to %s", number(e.Low), number(e.High))
}

// span writes a duration in its largest unit.
func span(d time.Duration) string {
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute} {
		if d >= unit && d%unit == 0 {
			return fmt.Sprintf("%d%c", d/unit, "dhm"[i])
		}
	}
	return d.String()
}

// printable quotes characters that must not reach a terminal.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(s)
	}
	return s
}
