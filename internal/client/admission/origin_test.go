package admission

import (
	"math"
	"math/rand/v2"
	"time"
)

// query is one question to a simulated origin.
type query struct {
	cost      time.Duration // of work, when the origin does nothing else
	work      float64       // processor sharing: the virtual time at which it is done
	begun     time.Duration
	at        time.Duration // a worker finishes it
	seq       int
	running   bool
	abandoned bool // nobody waits: it timed out
	ended     bool
	flight    *simFlight
}

// origin is a model of what loads ask.
type origin interface {
	begin(now time.Duration, q *query) bool // false: refused
	next() time.Duration                    // when step has something to do
	step(now time.Duration) *query          // what is finished by now; nil: nothing
	abandon(now time.Duration, q *query)
}

const never = time.Duration(math.MaxInt64)

// heap orders queries by when, then by their numbers.
type heap struct {
	all  []*query
	less func(a, b *query) bool
}

func (h *heap) push(q *query) {
	h.all = append(h.all, q)
	for i := len(h.all) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(h.all[i], h.all[up]) {
			return
		}
		h.all[i], h.all[up] = h.all[up], h.all[i]
		i = up
	}
}

func (h *heap) pop() *query {
	top, last := h.all[0], len(h.all)-1
	h.all[0] = h.all[last]
	h.all = h.all[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			return top
		}
		if down+1 < last && h.less(h.all[down+1], h.all[down]) {
			down++
		}
		if !h.less(h.all[down], h.all[i]) {
			return top
		}
		h.all[i], h.all[down] = h.all[down], h.all[i]
		i = down
	}
}

// workers is an origin that works on so many queries at a time and keeps the others in order. It finishes what was abandoned,
// unless it cancels.
type workers struct {
	count   int
	conns   int // refuses more queries than this; 0: none
	cancels bool
	speed   func(now time.Duration) float64 // nil: 1

	busy    int
	open    int
	waiting []*query
	head    int
	running heap
}

func newWorkers(count int) *workers {
	return &workers{count: count, running: heap{less: func(a, b *query) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }}}
}

func (o *workers) begin(now time.Duration, q *query) bool {
	if o.conns > 0 && o.open >= o.conns {
		return false
	}
	o.open++
	o.waiting = append(o.waiting, q)
	o.run(now)
	return true
}

func (o *workers) run(now time.Duration) {
	for o.busy < o.count && o.head < len(o.waiting) {
		q := o.waiting[o.head]
		o.waiting[o.head] = nil
		if o.head++; o.head > 4096 && o.head > len(o.waiting)/2 {
			o.waiting = append([]*query(nil), o.waiting[o.head:]...)
			o.head = 0
		}
		if q.ended { // cancelled
			continue
		}
		cost := q.cost
		if o.speed != nil {
			cost = time.Duration(float64(cost) / o.speed(now))
		}
		o.busy++
		q.running, q.at = true, now+cost
		o.running.push(q)
	}
}

func (o *workers) next() time.Duration {
	for len(o.running.all) > 0 && o.running.all[0].ended { // cancelled
		o.running.pop()
	}
	if len(o.running.all) == 0 {
		return never
	}
	return o.running.all[0].at
}

func (o *workers) step(now time.Duration) *query {
	if o.next() > now {
		return nil
	}
	q := o.running.pop()
	q.ended = true
	o.busy--
	o.open--
	o.run(now)
	return q
}

func (o *workers) abandon(now time.Duration, q *query) {
	if !o.cancels {
		return
	}
	q.ended = true
	o.open--
	if q.running {
		o.busy--
		o.run(now)
	}
}

// sharing is an origin that works on all queries at once: its speed is that of count workers, and each query gets at most one.
// With a knee, more queries than that cost it throughput.
type sharing struct {
	count   int
	knee    int
	virtual float64 // seconds of work that each query was given so far
	at      time.Duration
	running heap
}

func newSharing(count, knee int) *sharing {
	return &sharing{count: count, knee: knee, running: heap{less: func(a, b *query) bool { return a.work < b.work || a.work == b.work && a.seq < b.seq }}}
}

func (o *sharing) rate() float64 {
	n := float64(len(o.running.all))
	rate := min(1, float64(o.count)/n)
	if knee := float64(o.knee); knee > 0 && n > knee {
		rate *= max(.02, knee/n)
	}
	return rate
}

func (o *sharing) advance(now time.Duration) {
	if len(o.running.all) > 0 {
		o.virtual += (now - o.at).Seconds() * o.rate()
	}
	o.at = now
}

func (o *sharing) begin(now time.Duration, q *query) bool {
	o.advance(now)
	q.work = o.virtual + q.cost.Seconds()
	o.running.push(q)
	return true
}

func (o *sharing) next() time.Duration {
	if len(o.running.all) == 0 {
		return never
	}
	left := (o.running.all[0].work - o.virtual) / o.rate()
	return o.at + max(0, time.Duration(math.Ceil(left*1e9)))
}

func (o *sharing) step(now time.Duration) *query {
	if o.next() > now {
		return nil
	}
	o.advance(now)
	q := o.running.pop()
	q.ended = true
	return q
}

func (o *sharing) abandon(time.Duration, *query) {}

// costs draws the work of one query.
type costs func(r *rand.Rand) time.Duration

func exponential(mean time.Duration) costs {
	return func(r *rand.Rand) time.Duration { return time.Duration(float64(mean) * (.5 + .5*r.ExpFloat64())) }
}

func lognormal(mean time.Duration, sigma float64) costs {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(float64(mean) * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2))
	}
}

func bimodal(fast, slow time.Duration, share float64) costs {
	return func(r *rand.Rand) time.Duration {
		if r.Float64() < share {
			return slow
		}
		return fast
	}
}
