package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// limits makes contexts that end after a fixed time, as context.WithTimeout does, for the way of every read: two
// allocations instead of five, as the timer is used again.
type limits struct {
	after  time.Duration
	alarms sync.Pool // of *alarm that are not armed
}

// limit is one such context.
type limit struct {
	context.Context // the caller's
	at              time.Time
	alarm           *alarm
	unlink          func() bool // from the caller's context; nil if that has no end

	done  chan struct{}
	ended atomic.Pointer[error] // written once, before done is closed
}

// alarm is a timer and whom it is for.
type alarm struct {
	timer *time.Timer
	of    atomic.Pointer[limit]
}

// begin returns a context on ctx. It must be ended.
func (ls *limits) begin(ctx context.Context, now time.Time) *limit {
	l := &limit{Context: ctx, at: now.Add(ls.after), done: make(chan struct{})}
	if ctx.Done() != nil {
		l.unlink = context.AfterFunc(ctx, func() { err := ctx.Err(); l.end(&err) })
	}
	l.alarm, _ = ls.alarms.Get().(*alarm)
	if l.alarm != nil {
		l.alarm.of.Store(l)
		l.alarm.timer.Reset(l.at.Sub(now))
		return l
	}
	a := &alarm{}
	a.of.Store(l)
	l.alarm = a
	a.timer = time.AfterFunc(l.at.Sub(now), func() {
		if l := a.of.Load(); l != nil {
			l.end(&exceeded)
		}
	})
	return l
}

// end gives the context back: whoever still holds it finds it cancelled.
func (ls *limits) end(l *limit) {
	if l.unlink != nil {
		l.unlink()
	}
	stopped := l.alarm.timer.Stop()
	l.alarm.of.Store(nil)
	l.end(&canceled)
	if stopped { // one that fired, or is about to, may still look at whom it is for: it is not used again
		ls.alarms.Put(l.alarm)
	}
}

var canceled, exceeded = context.Canceled, context.DeadlineExceeded

func (l *limit) end(err *error) {
	if l.ended.CompareAndSwap(nil, err) {
		close(l.done)
	}
}

// Deadline, Done and Err are a context's.
func (l *limit) Deadline() (time.Time, bool) {
	if at, ok := l.Context.Deadline(); ok && at.Before(l.at) {
		return at, true
	}
	return l.at, true
}

func (l *limit) Done() <-chan struct{} { return l.done }

func (l *limit) Err() error {
	select {
	case <-l.done:
		return *l.ended.Load()
	default:
		return nil
	}
}
