package engine

import (
	"math"
	"time"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// tickWork bounds the work of one Tick, so that a burst of deadlines does not keep commands waiting; NextWake then returns a time that has
// been reached.
const tickWork = 4096

// Tick does what is due at now, in unix microseconds: it reaps dead keys and fields, and replies to blocked sessions whose timeout has
// passed. One call does a bounded amount of work; NextWake says when the next one is needed.
func (e *Engine) Tick(now int64) {
	if e.scripts.busy() {
		return
	}
	e.setNow(now)
	e.endPause()
	e.reapWaits()
	e.tendFeed()
	if e.activeOff || e.hides() {
		return
	}
	if e.options.Cycle == Documented {
		if e.ms < e.lastCycle+e.cycle().Every().Milliseconds() {
			return
		}
		e.lastCycle = e.ms
	}
	work := tickWork
	for _, d := range e.dbs {
		work -= e.reapKeys(d, work)
		work -= e.reapFields(d, work)
	}
	e.flushInvalidations()
	e.serveReady()
}

// NextWake returns when Tick is needed next, in unix microseconds. ok is false when nothing will ever become due: the owner can park its
// timer until the next command.
func (e *Engine) NextWake() (at int64, ok bool) {
	if e.scripts.busy() {
		return 0, false
	}
	soonest := func(ms int64, found bool) {
		if found && (!ok || ms < at) {
			at, ok = ms, true
		}
	}
	if !e.activeOff && !e.hides() {
		for _, d := range e.dbs {
			soonest(d.deadlines.Next())
			soonest(d.fields.Next())
		}
		if ok && e.options.Cycle == Documented {
			at = max(at, e.lastCycle+e.cycle().Every().Milliseconds())
		}
	}
	soonest(e.pause.until, e.pause.until != 0)
	soonest(e.waits.Next())
	if e.master == nil || len(e.feed.replicas) == 0 {
		soonest(e.feed.next())
	}
	if at > math.MaxInt64/1000 {
		return math.MaxInt64, ok
	}
	return at * 1000, ok
}

// reapKeys removes up to max dead keys of d, found by the configured cycle, and returns how many it removed.
func (e *Engine) reapKeys(d *db, max int) int {
	if d.deadlines.Len() == 0 || max <= 0 {
		return 0
	}
	e.due = e.due[:0]
	var ended []int64 // for a snapshot in progress
	found := func(id uint32) {
		e.due = append(e.due, id)
		if len(d.parts) > 0 {
			ended = append(ended, d.deadlines.Last())
		}
	}
	if e.options.Cycle == Documented {
		e.cycle().Run(&d.deadlines, e.ms, e.draw, workClock(), found)
	} else {
		d.deadlines.Reap(e.ms, max, found)
	}
	for i, id := range e.due {
		if len(d.parts) > 0 {
			d.deadlines.Set(id, ended[i])
		}
		e.expire(d, d.at(id))
		e.endUnit(Done)
	}
	return len(e.due)
}

// workClock is a clock for the cycle's time limit that does not depend on the machine: a step, which looks at 20 keys, counts as 10
// microseconds.
func workClock() func() time.Duration {
	const step = 10 * time.Microsecond
	t := -step
	return func() time.Duration {
		t += step
		return t
	}
}

// cycle is the cycle that Redis documents, run hz times a second.
func (e *Engine) cycle() expiry.Cycle { return expiry.Cycle{Hz: e.settings.hz} }
