package nodes

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/turns"
)

// Answer is what a read found. Left is the answer to PTTL, in its own encoding: -1 and -2 are -1ns and -2ns. Now is the answer to TIME on
// the same trip.
type Answer = turns.Answer

// Get reads the string under key and, with ttl, the time it has left. Concurrent reads travel together: such a trip has the values of the
// first caller's context, and its commands are shared. The bytes returned are the caller's own.
func (n *Node) Get(ctx context.Context, key string, ttl bool) Answer {
	return n.get(ctx, turns.Question{Key: key, TTL: ttl})
}

// Borrow is Get for a caller that expects about size bytes and gives them back, when it is done with them, to the answer's Loan, if it has one.
func (n *Node) Borrow(ctx context.Context, key string, size int) Answer {
	return n.get(ctx, turns.Question{Key: key, Lend: size})
}

func (n *Node) get(ctx context.Context, q turns.Question) Answer {
	now := time.Now()
	if err := ctx.Err(); err != nil {
		return Answer{Err: err}
	}
	verdict := n.breaker.Allow(now)
	if verdict == Refuse {
		return Answer{Err: ErrOpen}
	}
	var a Answer
	if n.line == nil {
		r := turns.Read{Question: q}
		if err := n.send(ctx, now, n.budget, []*turns.Read{&r}); err != nil {
			r.Answer.Err = err
		}
		a = r.Answer
		a.Took = time.Since(now)
	} else {
		a = n.line.Ask(ctx, q, verdict == Probe, now)
	}
	if a.Err == nil {
		return a
	}
	if n.elsewhere(a.Err) {
		return n.follow(ctx, q, a)
	}
	a.Err = n.unsent(a.Err)
	return a
}

// follow sends a read, by itself, to the server that the answer pointed to.
func (n *Node) follow(ctx context.Context, q turns.Question, was Answer) Answer {
	begun := time.Now()
	limited := n.limits.begin(ctx, begun, atLeast(n.budget-min(was.Took, n.budget/2)))
	defer n.limits.end(limited)
	r, t := turns.Read{Question: q}, newTrip(n)
	cmds := t.questions([]*turns.Read{&r})
	for _, cmd := range cmds {
		cmd.SetErr(was.Err)
		if err := n.settle(limited, cmd); err != nil {
			return Answer{Err: n.end(ctx, begun, 1, err), Took: was.Took + time.Since(begun)}
		}
	}
	n.end(ctx, begun, 1, nil)
	t.answer(0, &r)
	r.Took = was.Took + time.Since(begun)
	return r.Answer
}

// send asks for all reads in one trip, which has begun.
func (n *Node) send(ctx context.Context, begun time.Time, within time.Duration, reads []*turns.Read) error {
	limited := n.limits.begin(ctx, begun, atLeast(within))
	defer n.limits.end(limited)
	if len(reads) == 1 && reads[0].Lend > 0 {
		if lost, fits := n.sendLending(limited, reads[0]); fits {
			return n.end(ctx, begun, 1, lost)
		}
	}
	t, _ := n.trips.Get().(*trip)
	if t == nil {
		t = newTrip(n)
	}
	cmds := t.questions(reads)
	var at *question
	if len(cmds) > len(reads) { // a read asks for a PTTL
		if at = n.timeWanted(); at != nil {
			cmds = append(cmds, at.cmd)
		}
	}
	var lost error
	if len(cmds) == 1 {
		n.client.Process(limited, cmds[0])
	} else {
		t.pipe.BatchProcess(limited, cmds...)
		_, lost = t.pipe.Exec(limited)
	}
	lost = t.answers(reads, lost, at)
	if lost == nil {
		n.trips.Put(t) // if there was no answer, something may still hold the commands
	}
	if at != nil {
		now := n.heardTime(ctx, at, begun, lost)
		for _, r := range reads {
			r.Now = now
		}
	}
	callers := 0
	for _, r := range reads {
		callers += r.Callers()
	}
	return n.end(ctx, begun, callers, lost)
}

// trip has the commands for a trip of reads. It is reused once all of them are answered.
type trip struct {
	n    *Node
	pipe redis.Pipeliner
	gets []*redis.StringCmd
	ttls []*redis.DurationCmd
	cmds []redis.Cmder
}

func newTrip(n *Node) *trip { return &trip{n: n, pipe: n.client.Pipeline()} }

// questions returns the commands of reads.
func (t *trip) questions(reads []*turns.Read) []redis.Cmder {
	ctx := context.Background() // the trip's context is given when it is sent
	t.cmds = t.cmds[:0]
	for i, r := range reads {
		if i == len(t.gets) {
			t.gets = append(t.gets, redis.NewStringCmd(ctx, "get", nil))
			t.ttls = append(t.ttls, redis.NewDurationCmd(ctx, time.Millisecond, "pttl", nil))
		}
		key := any(r.Key) // boxed once for both
		t.gets[i].Args()[1] = key
		t.cmds = append(t.cmds, t.gets[i])
		if r.TTL {
			t.ttls[i].Args()[1] = key
			t.cmds = append(t.cmds, t.ttls[i])
		}
	}
	return t.cmds
}

// answers stores the answers in reads, and returns why a read got none. failed is the error of the pipeline: a hook that ends it may report
// that nowhere else. at is the question for the time on the same trip, or nil.
func (t *trip) answers(reads []*turns.Read, failed error, at *question) (lost error) {
	told := at != nil && at.cmd.Err() != nil
	for i, r := range reads {
		err := t.answer(i, r)
		if told = told || err != nil; !r.Answered {
			lost = err
		}
	}
	if failed != nil && !told {
		for _, r := range reads {
			r.Answered = false
		}
		return failed
	}
	return lost
}

// answer stores the answer to one read, and returns its error.
func (t *trip) answer(i int, r *turns.Read) error {
	get := t.gets[i]
	raw, err := get.Bytes()
	absent := errors.Is(err, redis.Nil)
	if r.TTL && err == nil {
		if e := t.ttls[i].Err(); e != nil {
			err = e
		}
	}
	switch {
	case absent:
		r.Answered = true
	case err == nil:
		r.Answered, r.Found, r.Raw = true, true, raw
		if r.TTL {
			r.Left = t.ttls[i].Val()
		}
	case Answered(err) || t.n.elsewhere(err):
		r.Answered, r.Err = true, err
	}
	get.SetVal("") // the bytes belong to the reader alone
	get.SetErr(nil)
	t.ttls[i].SetErr(nil)
	return err
}
