package turns

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly/internal/client/flight"
)

// alone sends one read in its caller's goroutine, with the caller's context.
func (l *Line) alone(ctx context.Context, q Question, of Owner, now time.Time) Answer {
	gate, within := l.opt.Gate, l.opt.Patience.Silent
	waited, err := gate.Enter(ctx, of, l.opt.Patience)
	if waited > 0 {
		l.waited(ctx, waited, 1, err)
	}
	if err != nil {
		return Answer{Err: err}
	}
	defer gate.Leave()
	if waited > 0 {
		since := now
		now = time.Now()
		if within = gate.Left(within, since, now); within <= 0 {
			return Answer{Err: ErrSilent}
		}
	}
	r := l.reads.Get().(*Read)
	r.Question = q
	err = l.opt.Send(ctx, now, within, r.self[:])
	l.book(r.self[:], now, err)
	a := r.Answer
	l.recycle(r)
	return a
}

// book records how a trip sent at sent went.
func (l *Line) book(reads []*Read, sent time.Time, err error) {
	now := time.Now()
	took := now.Sub(sent)
	for _, r := range reads {
		if r.Took = took; !r.Answered {
			if r.Err = err; err == nil {
				r.Err = ErrSilent
			}
		}
	}
	if err == nil {
		l.opt.Gate.Heard(now)
		l.pace.add(took, now)
	}
}

// start starts a goroutine that sends the waiting reads. The caller has counted its lane.
func (l *Line) start() {
	if !l.opt.Start(l.run) {
		l.giveUp(l.opt.Closed)
	}
}

// giveUp gives up a lane and fails all waiting reads.
func (l *Line) giveUp(why error) {
	l.mu.Lock()
	l.lanes--
	all := l.takeAll()
	l.mu.Unlock()
	l.fail(all, why)
}

// back gives a lane back, or starts a goroutine that takes it over if reads are waiting.
func (l *Line) back() {
	l.mu.Lock()
	more := l.first != nil && l.lanes <= l.pace.lanes(l.opt.Gate.size)
	if !more {
		l.lanes--
	}
	l.mu.Unlock()
	if more {
		l.start()
	}
}

// run makes trips until no read waits.
func (l *Line) run() {
	var reads []*Read
	for l.trip(&reads) {
	}
}

// trip waits for a turn and then sends the waiting reads, including those that arrive until then. It reports whether there may be more.
func (l *Line) trip(scratch *[]*Read) (more bool) {
	l.mu.Lock()
	if l.first == nil {
		l.lanes--
		l.mu.Unlock()
		return false
	}
	l.gating++
	l.mu.Unlock()
	_, err := l.opt.Gate.Enter(context.Background(), l, Patience{}) // ring looks after the waiting reads
	l.mu.Lock()
	l.gating--
	if err != nil { // refused: nothing will be sent
		l.mu.Unlock()
		l.giveUp(err)
		return false
	}
	now := time.Now()
	reads, late, within := l.take((*scratch)[:0], now)
	*scratch = reads
	l.mu.Unlock()
	l.failLate(late)
	if len(reads) == 0 {
		l.opt.Gate.Leave()
		return true
	}

	err = flight.ErrGoexit
	defer func() { // even if a hook ended the goroutine
		l.opt.Gate.Leave()
		l.book(reads, now, err)
		l.landed(reads, now)
		if !more {
			l.back()
		}
	}()
	func() {
		defer flight.Recover(&err)
		err = l.opt.Send(context.WithoutCancel(reads[0].ctx), now, within, reads)
	}()
	return true
}

// take takes the reads for one trip, in order of arrival, and returns how long the trip may take: what is left of the patience of the read
// that has waited longest for a silent server. Reads that have waited too long are returned as late. The caller holds mu.
func (l *Line) take(into []*Read, now time.Time) (reads []*Read, late lateReads, within time.Duration) {
	size, oldest := 0, now
	for l.first != nil && len(into) < mostReads {
		r := l.first
		if !l.part(r, now, &late) {
			continue
		}
		if size += len(r.Key) + l.reply; size > mostBytes && len(into) > 0 {
			break
		}
		if r.since().Before(oldest) {
			oldest = r.since()
		}
		l.remove(r)
		into = append(into, r)
	}
	return into, late, l.opt.Gate.Left(l.opt.Patience.Silent, oldest, now)
}

// landed hands out the answers of a trip sent at sent.
func (l *Line) landed(reads []*Read, sent time.Time) {
	n, bytes, longest, ctx := 0, 0, sent.Sub(reads[0].since()), reads[0].ctx
	for _, r := range reads {
		n += len(r.calls)
		bytes += len(r.Raw)
	}
	l.mu.Lock()
	l.reply = max(bytes/len(reads), l.reply-l.reply/8)
	l.mu.Unlock()
	for _, r := range reads {
		l.deliver(r)
	}
	clear(reads)
	l.waited(context.WithoutCancel(ctx), longest, n, nil)
}

// pace is the shortest time that a trip took recently. Longer trips are the crowd's doing, and no reason for more trips.
type pace struct {
	this, last atomic.Int64 // the shortest trip of this window and of the previous one; zero: there was none
	ends       atomic.Int64 // when this window ends
}

const paceWindow = 2 * time.Second

func (p *pace) add(took time.Duration, now time.Time) {
	if end := p.ends.Load(); instant(now) > end && p.ends.CompareAndSwap(end, instant(now.Add(paceWindow))) {
		p.last.Store(p.this.Swap(0))
	}
	for low := p.this.Load(); low == 0 || int64(took) < low; low = p.this.Load() {
		if p.this.CompareAndSwap(low, max(int64(took), 1)) {
			return
		}
	}
}

// lanes returns how many trips may be under way.
func (p *pace) lanes(size int) int {
	low, before := p.this.Load(), p.last.Load()
	if low == 0 || before != 0 && before < low {
		low = before
	}
	return min(max(int(low/int64(company)), 2), size)
}
