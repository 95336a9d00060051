package admission

import (
	"math/rand/v2"
	"time"
)

// admitter is what bounds the loads of one process.
type admitter interface {
	Limit() int
	Waits()
	Wanted(within time.Duration)
	InTime(left time.Duration) bool
	Done(begun, now time.Duration, how Outcome, waits bool)
}

// semaphore admits so many, whatever happens.
type semaphore int

func (s semaphore) Limit() int                                 { return int(s) }
func (s semaphore) Waits()                                     {}
func (s semaphore) Wanted(time.Duration)                       {}
func (s semaphore) InTime(time.Duration) bool                  { return true }
func (s semaphore) Done(_, _ time.Duration, _ Outcome, _ bool) {}

// world is some processes in front of one origin, with an empty Redis between them.
type world struct {
	rand    *rand.Rand
	origin  origin
	cost    costs
	keys    int
	gets    float64       // a second, of all processes
	wait    time.Duration // the deadline of each get
	timeout time.Duration // of each load
	unique  bool          // no key is asked for twice

	now      time.Duration
	procs    []*proc
	stored   []bool
	lease    []*simFlight // who loads a key
	timeouts []*query
	tHead    int
	refusals []*query // which the origin refused, with the time at which that is known
	rHead    int

	asked, answered []int // by window of arrival
	queries, useful int
	refused         int           // flights that left the queue
	queued, loading time.Duration // of all
	seq             int
}

const window = 250 * time.Millisecond

type proc struct {
	w        *world
	admit    admitter
	inFlight int
	flights  map[int]*simFlight
	queue    []*simFlight // flights whose callers may still be answered in time, and others
	late     []*simFlight
}

// simFlight is one key on its way in one process.
type simFlight struct {
	p         *proc
	key       int
	callers   []time.Duration // when they began
	cost      time.Duration
	since     time.Duration // in the queue
	elsewhere bool
}

func (f *simFlight) last() time.Duration { return f.callers[len(f.callers)-1] }

func newWorld(w world, n int, admit func() admitter) *world {
	if !w.unique {
		w.stored, w.lease = make([]bool, w.keys), make([]*simFlight, w.keys)
	}
	for range n {
		w.procs = append(w.procs, &proc{w: &w, admit: admit(), flights: map[int]*simFlight{}})
	}
	return &w
}

const refusal = time.Millisecond

// run lets the world go on until then.
func (w *world) run(until time.Duration, stop func() bool) {
	nextGet := w.now + w.gap()
	for check := w.now + window; ; {
		at := min(nextGet, w.origin.next())
		if w.tHead < len(w.timeouts) {
			at = min(at, w.timeouts[w.tHead].begun+w.timeout)
		}
		if w.rHead < len(w.refusals) {
			at = min(at, w.refusals[w.rHead].begun+refusal)
		}
		if at > until {
			w.now = until
			return
		}
		w.now = at
		if at >= check {
			check += window
			if stop != nil && stop() {
				return
			}
		}
		switch {
		case at == nextGet:
			w.get()
			nextGet = at + w.gap()
		case w.rHead < len(w.refusals) && at == w.refusals[w.rHead].begun+refusal:
			q := w.refusals[w.rHead]
			w.rHead++
			w.land(q.flight, q.begun, Failed)
		case at == w.origin.next():
			q := w.origin.step(at)
			if q == nil {
				break
			}
			if !q.abandoned {
				w.land(q.flight, q.begun, OK)
				q.abandoned = true
				q.flight = nil
			}
		default:
			q := w.timeouts[w.tHead]
			w.timeouts[w.tHead] = nil
			if w.tHead++; w.tHead > 4096 && w.tHead > len(w.timeouts)/2 {
				w.timeouts = append([]*query(nil), w.timeouts[w.tHead:]...)
				w.tHead = 0
			}
			if !q.abandoned {
				q.abandoned = true
				w.origin.abandon(at, q)
				w.land(q.flight, q.begun, TimedOut)
			}
		}
	}
}

func (w *world) gap() time.Duration {
	return time.Duration(w.rand.ExpFloat64() / w.gets * float64(time.Second))
}

func (w *world) get() {
	p := w.procs[w.rand.IntN(len(w.procs))]
	key := w.rand.IntN(w.keys)
	at := int(w.now / window)
	for len(w.asked) <= at {
		w.asked, w.answered = append(w.asked, 0), append(w.answered, 0)
	}
	w.asked[at]++
	if !w.unique && w.stored[key] {
		w.answered[at]++
		return
	}
	f := p.flights[key]
	if f != nil {
		f.callers = append(f.callers, w.now)
		return
	}
	f = &simFlight{p: p, key: key, cost: w.cost(w.rand), callers: []time.Duration{w.now}}
	p.flights[key] = f
	p.admit.Wanted(w.wait)
	p.enter(f)
}

func (p *proc) enter(f *simFlight) {
	f.since = p.w.now
	if p.inFlight < p.admit.Limit() {
		p.inFlight++
		p.w.begin(f)
		return
	}
	p.admit.Waits()
	p.queue = append(p.queue, f)
}

func (p *proc) pump() {
	for p.inFlight < p.admit.Limit() {
		f := p.pop()
		if f == nil {
			return
		}
		p.inFlight++
		p.w.queued += p.w.now - f.since
		p.w.begin(f)
	}
}

func (p *proc) pop() *simFlight {
	for len(p.queue) > 0 {
		f := p.queue[0]
		p.queue = p.queue[1:]
		left := f.last() + p.w.wait - p.w.now
		if left <= 0 {
			p.w.refused++
			delete(p.flights, f.key)
			continue
		}
		if !p.admit.InTime(left) {
			p.late = append(p.late, f)
			continue
		}
		return f
	}
	for len(p.late) > 0 {
		f := p.late[0]
		p.late = p.late[1:]
		if f.last()+p.w.wait <= p.w.now {
			p.w.refused++
			delete(p.flights, f.key)
			continue
		}
		return f
	}
	return nil
}

// begin claims the key and loads it.
func (w *world) begin(f *simFlight) {
	if !w.unique {
		if w.stored[f.key] {
			f.p.inFlight--
			w.serve(f)
			return
		}
		if w.lease[f.key] != nil {
			f.p.inFlight--
			f.elsewhere = true
			return
		}
		w.lease[f.key] = f
	}
	w.seq++
	w.queries++
	q := &query{cost: f.cost, begun: w.now, seq: w.seq, flight: f}
	if !w.origin.begin(w.now, q) {
		w.refusals = append(w.refusals, q)
		return
	}
	w.timeouts = append(w.timeouts, q)
}

func (w *world) serve(f *simFlight) {
	for _, began := range f.callers {
		if began+w.wait >= w.now {
			w.answered[began/window]++
		}
	}
	delete(f.p.flights, f.key)
}

// land ends a load.
func (w *world) land(f *simFlight, begun time.Duration, o Outcome) {
	p := f.p
	p.inFlight--
	if o == OK {
		w.useful++
		w.loading += w.now - begun
	}
	p.admit.Done(begun, w.now, o, len(p.queue)+len(p.late) > 0)
	if !w.unique {
		w.lease[f.key] = nil
		w.stored[f.key] = o == OK
	}
	if o == OK {
		w.serve(f)
	} else {
		delete(p.flights, f.key)
	}
	if !w.unique {
		for _, other := range w.procs {
			g := other.flights[f.key]
			if other == p || g == nil || !g.elsewhere {
				continue
			}
			g.elsewhere = false
			switch {
			case o == OK:
				w.serve(g)
			case g.last()+w.wait < w.now:
				delete(other.flights, g.key)
			default:
				other.enter(g)
			}
		}
	}
	p.pump()
}

// recovered is when, for the first time, 99 % of two seconds' gets in a row were answered; never if not yet.
func (w *world) recovered() time.Duration {
	ripe := int((w.now - w.wait) / window)
	const second = int(time.Second / window)
	for i := 0; i+2*second <= min(ripe, len(w.asked)); i++ {
		if w.share(i, i+second) >= .99 && w.share(i+second, i+2*second) >= .99 {
			return time.Duration(i) * window
		}
	}
	return never
}

func (w *world) share(from, to int) float64 {
	var asked, answered int
	for i := from; i < to; i++ {
		asked += w.asked[i]
		answered += w.answered[i]
	}
	if asked == 0 {
		return 1
	}
	return float64(answered) / float64(asked)
}
