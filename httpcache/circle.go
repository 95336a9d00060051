package httpcache

import (
	"slices"
	"sync"
)

// If the handlers of missing pages include each other, their loads would wait for each other in a circle. The request that would close the circle
// calls the handler itself. A request's context says which loads it is part of, so circles are found within one process, across all its caches. A
// circle through several processes ends when SharedWait does.

// waits records which requests made by handlers wait, and what for.
type waits struct {
	mu sync.Mutex // guards on
	on map[any][]*asking
}

var nested waits // of all caches: a circle may go through several

// enter records that a request that is part of inside is about to wait for on, until leave is called. If on itself waits for inside, it reports
// a circle instead. on is a flight, or the id of a claim that another cache of this process may hold.
func (w *waits) enter(inside *asking, on any) (leave func(), circle bool) {
	if inside == nil {
		return func() {}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holdsUp(inside, on) {
		return func() {}, true
	}
	if w.on == nil {
		w.on = make(map[any][]*asking)
	}
	w.on[on] = append(w.on[on], inside)
	return func() { w.leave(inside, on) }, false
}

func (w *waits) leave(inside *asking, on any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.on[on]
	i := slices.Index(all, inside)
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(w.on, on)
	} else {
		w.on[on] = all
	}
}

// holdsUp reports whether on can come only after inside: a load that inside is part of brings it, or brings what a request that is part of another
// such load waits for, and so on.
func (w *waits) holdsUp(inside *asking, on any) bool {
	known := make(map[any]bool)
	for todo := []*asking{inside}; len(todo) > 0; {
		a := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for ; a != nil; a = a.around {
			for _, brings := range a.brings {
				if brings == on {
					return true
				}
				if !known[brings] {
					known[brings] = true
					todo = append(todo, w.on[brings]...)
				}
			}
		}
	}
	return false
}
