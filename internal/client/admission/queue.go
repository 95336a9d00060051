package admission

import "time"

// waiter is a load in the queue.
type waiter struct {
	since   time.Time
	until   time.Time   // when the load's callers leave; zero: never
	granted chan Permit // receives its permit, or is closed

	in         *list // nil: not in the queue
	prev, next *waiter
}

// queue is in order of arrival, except that loads unlikely to be answered in time come last.
type queue struct {
	early, late list
}

func (q *queue) len() int       { return q.early.len + q.late.len }
func (q *queue) push(w *waiter) { q.early.push(w) }

// pop removes and returns the next load. The queue must not be empty. With a nil inTime every load counts as in time.
func (q *queue) pop(now time.Time, inTime func(left time.Duration) bool) *waiter {
	for w := q.early.first; w != nil; w = q.early.first {
		q.early.remove(w)
		if inTime == nil || w.until.IsZero() || inTime(w.until.Sub(now)) {
			return w
		}
		q.late.push(w)
	}
	w := q.late.first
	q.late.remove(w)
	return w
}

// list is a linked list of waiters. A waiter is in at most one list.
type list struct {
	first, last *waiter
	len         int
}

func (l *list) push(w *waiter) {
	w.in, w.prev, w.next = l, l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	l.len++
}

func (l *list) remove(w *waiter) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.in, w.prev, w.next = nil, nil, nil
	l.len--
}
