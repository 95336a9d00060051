package expiry

import "time"

// Figures say how promptly entries are reaped.
type Figures struct {
	Held   int // entries with a deadline, dead ones included
	Dead   int // those of Held that are over but not reaped yet
	Reaped int // entries reaped so far

	// How long the reaped entries had been dead, in total.
	OverdueSum time.Duration
	OverdueMax time.Duration
}

// reap counts an entry reaped this many milliseconds after its deadline.
func (f *Figures) reap(milliseconds int64) {
	overdue := time.Duration(milliseconds) * time.Millisecond
	f.Reaped++
	f.OverdueSum += overdue
	f.OverdueMax = max(f.OverdueMax, overdue)
}
