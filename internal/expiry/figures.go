package expiry

import "time"

// Figures say how well the end of things is kept.
type Figures struct {
	Held   int // entries with a deadline, dead ones included
	Dead   int // those of Held that are over and not yet reaped
	Reaped int // entries reaped so far

	// How long the reaped had been dead when they were reaped, over all of them.
	OverdueSum time.Duration
	OverdueMax time.Duration
}

// reap counts an entry that was reaped so many milliseconds after its deadline.
func (f *Figures) reap(milliseconds int64) {
	overdue := time.Duration(milliseconds) * time.Millisecond
	f.Reaped++
	f.OverdueSum += overdue
	f.OverdueMax = max(f.OverdueMax, overdue)
}
