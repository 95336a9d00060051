package sliding

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/mayflycache/mayfly"
)

// trip is a round trip under way for several callers: the one whose calls it asks for, and others that wait for the share.
type trip struct {
	done chan struct{}
	n    int
	left bool // guarded by lessee.mu: the caller whose calls the trip asks for has left

	d        Decision
	err, why error // why is err for the callers whose calls were not sent
}

// lease asks for n calls of key when no share has them. One caller at a time makes the trip, for all that wait: one trip serves many calls. If that
// caller leaves, the trip continues.
func (l *Limiter[K]) lease(ctx context.Context, key K, full string, n int) (Decision, error) {
	for try := 0; n > 0 && try < tries; try++ { // looking at a key that is not in use is not worth a share
		e := l.leases.enter(key, full, int64(l.opt.Limit))
		if e == nil {
			break
		}
		e.mu.Lock()
		if e.dropped {
			e.mu.Unlock()
			continue
		}
		now := time.Now()
		if d, known := e.share.Load().decide(n, now); known {
			e.mu.Unlock()
			return d, nil
		}
		if try == 0 {
			e.asked += int64(n)
		}
		t := e.trip
		if t == nil && now.Before(e.alone) {
			e.mu.Unlock()
			break
		}
		mine := t == nil
		if mine {
			t = &trip{done: make(chan struct{}), n: n}
			if !l.leases.works.Start(l.begin(context.WithoutCancel(ctx), e, t, now)) {
				e.mu.Unlock()
				break
			}
			e.trip = t
		}
		e.mu.Unlock()
		select {
		case <-t.done:
		case <-ctx.Done():
			if mine && e.leave(t) {
				return Decision{}, fmt.Errorf("%w: %w", mayfly.ErrUnknownOutcome, ctx.Err())
			}
			if !mine {
				return Decision{}, ctx.Err()
			}
			<-t.done
		}
		switch {
		case mine:
			return t.d, t.err
		case t.why != nil:
			return Decision{}, t.why
		}
	}
	return l.direct(ctx, full, n)
}

// tries is how often a caller waits in vain for a share before it asks Redis itself.
const tries = 3

// leave tells a trip that its caller has left, so that others get its calls. It reports false if the trip is over.
func (e *lessee) leave(t *trip) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	t.left = e.trip == t
	return t.left
}

// begin returns a function that makes a trip for e, whose mutex the caller holds.
func (l *Limiter[K]) begin(ctx context.Context, e *lessee, t *trip, now time.Time) func() {
	e.endLocked(now)
	want := e.wants.next(e.asked, now.Sub(e.since))
	e.asked, e.since = 0, now
	wants, s, debts := e.wants, &share{begun: now, id: rand.Uint64()}, slices.Clone(e.debts)
	return func() {
		reply, err := l.leases.ask(ctx, l, e.full, t.n, want, wants.calls, s.id, debts)
		if err != nil {
			t.why, t.err = err, l.failure(ctx, e.full, err)
		} else {
			t.d = l.bring(s, wants, t.n, reply)
		}
		e.mu.Lock()
		if err == nil {
			e.paidLocked(debts)
			switch {
			case reply[5] < 0: // others have all calls that may be out in shares
				e.alone = now.Add(l.opt.Lease / 8)
			case s.size > 0 && s.age(time.Now()) >= max(s.length, l.opt.Lease/8): // the round trip to Redis takes longer than a lease
				e.alone = time.Now().Add(8 * l.opt.Lease)
			}
			if t.left && t.d.Allowed {
				s.size += int64(t.n)
				s.calls.Add(int64(t.n))
			}
			e.share.Store(s)
		} else if want > 0 {
			e.debts = append(e.debts, debt{s.id, int64(l.opt.Limit), time.Now()}) // if Redis gave the share, nobody uses it
		}
		e.trip = nil
		e.mu.Unlock()
		close(t.done)
	}
}

// ask makes the trip.
func (ls *leases[K]) ask(ctx context.Context, l *Limiter[K], full string, n int, want int64, calls float64, id uint64, debts []debt) ([]int64, error) {
	reply, err := ls.script.IntsOnce(ctx, l.redis, full, l.leaseArgs(n, want, calls, id, debts)...)
	if err == nil && len(reply) < leaseReply {
		err = l.odd(full, reply)
	}
	return reply, err
}

func (l *Limiter[K]) leaseArgs(n int, want int64, calls float64, id uint64, debts []debt) []any {
	args := []any{n, l.limit, l.whole, want, int64(math.Ceil(calls)), l.opt.Lease.Milliseconds(), l.opt.Limit / 32, strconv.FormatUint(id, 10)}
	for _, d := range debts {
		args = append(args, strconv.FormatUint(d.id, 10), d.unused)
	}
	return args
}

// bring makes a share from a reply, and returns the decision for the n calls that were asked for with it.
func (l *Limiter[K]) bring(s *share, wants appetite, n int, reply []int64) Decision {
	d := l.read(n, reply[:4])
	room, size, length, others := max(reply[4], 0), max(reply[5], 0), time.Duration(reply[6])*time.Microsecond, reply[7] > 0
	s.size, s.length = size, length-length/128
	s.calls.Store(size)
	s.said = d
	s.said.Remaining = int(room)
	s.said.RetryAfter = 0
	s.heard = time.Now()
	if !d.Allowed || room == 0 {
		s.refuses = func(n int) (retry, again time.Duration) {
			retry = l.retry(n, reply)
			return retry, wants.again(retry, others, l.opt.Sliding)
		}
		_, s.again = s.refuses(max(n, 1))
	}
	d.Remaining = int(room + size)
	if !d.Allowed {
		d.RetryAfter = max(d.RetryAfter, s.again)
	}
	return d
}
