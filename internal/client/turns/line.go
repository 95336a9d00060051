package turns

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"
)

// The most that travels together. Bytes count the keys and the expected replies, judged by recent ones. One read always fits.
const (
	mostReads = 256
	mostBytes = 256 << 10
)

// company is how long a read waits for company on average: as many trips may be under way as company fits into the time of one trip.
const company = 100 * time.Microsecond

// patience is how long a read waits for the trips under way to return before it starts another, if there is a turn for it.
const patience = 5 * time.Millisecond

// Options say which reads a line sends, and how.
type Options struct {
	// Gate gives each trip its turn.
	Gate *Gate

	// Patience is how long a read may wait. Silent is also how long a trip may take.
	Patience Patience

	// Send asks the server at now and stores the answer in each read. Its error says that some reads have no answer. A read alone is sent
	// with its caller's context. Reads that travel together are sent with a context that has the values of the first one's and never ends.
	Send func(ctx context.Context, now time.Time, within time.Duration, reads []*Read) error

	// Refused returns why nothing may be sent now, or nil.
	Refused func() error

	// Start runs in a goroutine a function that sends reads for others, and reports false if the owner is closed. Waiting reads then get
	// Closed.
	Start  func(func()) bool
	Closed error

	// Waited is told that n calls have waited, the first one for took; with an err they waited in vain. May be nil.
	Waited func(ctx context.Context, took time.Duration, n int, err error)
}

// Line is where one asker's reads wait for one server. The first few go at once, each alone, in their callers' goroutines. As many trips
// may be under way as fit into the time of one trip, [company] apart. Reads that arrive meanwhile wait, and go together on the next trip. A
// read of a key that another waiting read asks for joins that one, until it is sent.
type Line struct {
	opt   Options
	reads sync.Pool // of *Read. Not shared between lines: the channels of one synctest bubble must not get into another
	calls sync.Pool // of *call

	mu          sync.Mutex         // guards the fields below
	first, last *Read              // the waiting reads, in order of arrival
	unsent      map[Question]*Read // by their questions, without Lend
	lanes       int                // trips under way, including those waiting at the gate
	gating      int                // trips waiting at the gate
	armed       bool
	alarm       *time.Timer
	reply       int // bytes of a reply, recently

	pace pace
}

// Question is what a read asks for.
type Question struct {
	Key  string
	TTL  bool // also asks for the time left
	Lend int  // a caller that gives the answer's bytes back expects about so many; zero: the bytes are the caller's own
}

// Read is a question to the server and its answer.
type Read struct {
	Question
	Answer

	// Answered is set by Send when Answer is valid.
	Answered bool

	calls      []*call // in order of arrival
	ctx        context.Context
	prev, next *Read
	self       [1]*Read
}

// Answer is what the server said.
type Answer struct {
	Raw   []byte
	Found bool
	Left  time.Duration // as PTTL returns it
	Now   int64         // the server's time in milliseconds since 1970, if it was asked for too
	Err   error         // the server's error, or why there is no answer

	// Took is how long the server and the network took. Time before that was waiting.
	Took time.Duration

	// Loan has the bytes that Raw is part of; nil: they are the caller's own.
	Loan Loan
}

// Loan is the memory of an answer. Its caller may give it back once nothing holds any of Raw, and then must not touch it any more. What is not
// given back is garbage.
type Loan interface{ GiveBack() }

// call is a caller that waits.
type call struct {
	answer Answer
	at     time.Time // since when it waits
	read   *Read     // its read, until that is sent
	done   chan struct{}
}

// NewLine returns an empty line.
func NewLine(o Options) *Line {
	if o.Waited == nil {
		o.Waited = func(context.Context, time.Duration, int, error) {}
	}
	l := &Line{opt: o, unsent: make(map[Question]*Read)}
	l.reads.New = func() any { r := new(Read); r.self[0] = r; return r }
	l.calls.New = func() any { return &call{done: make(chan struct{}, 1)} }
	return l
}

// Refused returns why nothing may be sent now, or nil. It also lets a line be the [Owner] of the writes beside it.
func (l *Line) Refused() error { return l.opt.Refused() }

// Ask reads for a caller that began at now. The returned bytes are the caller's own, or a loan: only a read alone gets one. A probe is sent
// alone, whatever Refused says.
func (l *Line) Ask(ctx context.Context, q Question, probe bool, now time.Time) Answer {
	if probe {
		return l.alone(ctx, q, nil, now)
	}
	l.mu.Lock()
	if l.first == nil && l.lanes < l.pace.lanes(l.opt.Gate.size) {
		l.lanes++
		l.mu.Unlock()
		defer l.back()
		return l.alone(ctx, q, l, now)
	}
	if err := l.opt.Refused(); err != nil { // under mu: a later Dismiss finds the waiter
		l.mu.Unlock()
		return Answer{Err: err}
	}
	q.Lend = 0
	c := l.calls.Get().(*call)
	r := l.unsent[q]
	if r == nil {
		r = l.append(ctx, q)
	}
	r.calls, c.read, c.at = append(r.calls, c), r, now
	l.arm(patience)
	more := l.lanes < l.pace.lanes(l.opt.Gate.size) // the number of lanes has grown
	if more {
		l.lanes++
	}
	l.mu.Unlock()
	if more {
		l.start()
	}

	select {
	case <-c.done:
		a := c.answer
		c.answer = Answer{}
		l.calls.Put(c)
		return a
	case <-ctx.Done():
	}
	if l.leave(c) {
		l.calls.Put(c)
		l.waited(ctx, time.Since(now), 1, ctx.Err())
	}
	return Answer{Err: ctx.Err()} // an answer that arrives now goes to nobody
}

// append makes a new read the last of the line. The caller holds mu.
func (l *Line) append(ctx context.Context, q Question) *Read {
	r := l.reads.Get().(*Read)
	r.Question, r.ctx, r.prev = q, ctx, l.last
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	l.unsent[q] = r
	return r
}

// remove takes r out of the line. The caller holds mu.
func (l *Line) remove(r *Read) {
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
	delete(l.unsent, r.Question)
	for _, c := range r.calls {
		c.read = nil
	}
}

// leave takes a caller out of the line. It reports false if its read has been sent.
func (l *Line) leave(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := c.read
	if r == nil {
		return false
	}
	i := slices.Index(r.calls, c)
	r.calls = slices.Delete(r.calls, i, i+1)
	c.read = nil
	if len(r.calls) == 0 {
		l.remove(r)
		l.recycle(r)
	}
	return true
}

// recycle keeps a read for reuse. Nobody may hold it any more.
func (l *Line) recycle(r *Read) {
	clear(r.calls)
	*r = Read{calls: r.calls[:0], self: r.self}
	l.reads.Put(r)
}

// Dismiss ends the waiting of all reads that have not been sent, here and at the gate.
func (l *Line) Dismiss(why error) {
	l.opt.Gate.Dismiss(l, why)
	l.mu.Lock()
	sent := l.takeAll()
	l.mu.Unlock()
	l.fail(sent, why)
}

// takeAll takes all waiting reads. The caller holds mu.
func (l *Line) takeAll() (all []*Read) {
	for l.first != nil {
		r := l.first
		l.remove(r)
		all = append(all, r)
	}
	return all
}

// fail ends the waiting of reads that were taken off the line without being sent.
func (l *Line) fail(reads []*Read, why error) {
	if len(reads) == 0 {
		return
	}
	n, longest, ctx := 0, time.Since(reads[0].since()), context.WithoutCancel(reads[0].ctx)
	for _, r := range reads {
		n += len(r.calls)
		r.Err = why
		l.deliver(r)
	}
	l.waited(ctx, longest, n, why)
}

// waited reports a wait, if it is worth reporting. Shorter waits are how reads get to travel together.
func (l *Line) waited(ctx context.Context, took time.Duration, n int, err error) {
	if took >= time.Millisecond {
		l.opt.Waited(ctx, took, n, err)
	}
}

// deliver gives r's answer to all its callers, and each its own bytes.
func (l *Line) deliver(r *Read) {
	for i, c := range r.calls {
		c.answer = r.Answer
		if i > 0 {
			c.answer.Raw = bytes.Clone(r.Raw)
		}
	}
	for _, c := range r.calls {
		c.done <- struct{}{}
	}
	l.recycle(r)
}

// arm makes ring run after d, unless it is already armed. The caller holds mu.
func (l *Line) arm(d time.Duration) {
	switch {
	case l.armed:
		return
	case l.alarm == nil:
		l.alarm = time.AfterFunc(d, l.ring)
	default:
		l.alarm.Reset(d)
	}
	l.armed = true
}

// ring looks after the waiting reads. One that has waited too long for the trips under way starts another, and one that has waited for as
// long as it may fails.
func (l *Line) ring() {
	now := time.Now()
	l.mu.Lock()
	l.armed = false
	var late lateReads
	for r := l.first; r != nil; {
		next := r.next
		l.part(r, now, &late)
		r = next
	}
	more := false
	if l.first != nil {
		age := now.Sub(l.first.since())
		if more = age >= patience && l.gating == 0 && l.lanes < l.opt.Gate.size; more {
			l.lanes++
		}
		wait := patience
		if age < patience {
			wait -= age
		}
		l.arm(wait)
	}
	l.mu.Unlock()
	l.failLate(late)
	if more {
		l.start()
	}
}

// Callers returns how many callers wait for the answer.
func (r *Read) Callers() int { return max(len(r.calls), 1) }

// since returns when the first caller began to wait.
func (r *Read) since() time.Time { return r.calls[0].at }

// lateReads are reads that have waited for as long as they may, by the reason.
type lateReads struct{ crowded, silent []*Read }

// part removes from r the callers that have waited for as long as they may, and reports whether any are left. The caller holds mu.
func (l *Line) part(r *Read, now time.Time, late *lateReads) (any bool) {
	n := 0
	var why error
	for ; n < len(r.calls); n++ {
		_, err := l.opt.Gate.left(l.opt.Patience, r.calls[n].at, now)
		if err == nil {
			break
		}
		why = err
	}
	if n == 0 {
		return true
	}
	theirs := r
	if n == len(r.calls) {
		l.remove(r)
	} else {
		theirs = l.reads.Get().(*Read)
		theirs.ctx = r.ctx
		theirs.calls = append(theirs.calls, r.calls[:n]...)
		r.calls = slices.Delete(r.calls, 0, n)
		for _, c := range theirs.calls {
			c.read = nil
		}
	}
	if why == ErrCrowded {
		late.crowded = append(late.crowded, theirs)
	} else {
		late.silent = append(late.silent, theirs)
	}
	return theirs != r
}

func (l *Line) failLate(late lateReads) {
	l.fail(late.crowded, ErrCrowded)
	l.fail(late.silent, ErrSilent)
}
