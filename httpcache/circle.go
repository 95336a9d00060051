package httpcache

import (
	"slices"
	"sync"
)

// If the handlers of missing pages include each other, their loads would wait in a circle. The request that would close the circle asks the
// handler itself. A request's context says which loads it is part of, so circles are found within one process, across all its caches. A circle
// through several processes ends with SharedWait.

// waits are those of requests that handlers make.
type waits struct {
	mu sync.Mutex // guards on
	on map[any][]*asking
}

var nested waits // of all caches: a circle may go through several

// enter says that a request which is a part of inside is about to wait for something, until leave is called; or else that this waits
// for inside. What is waited for is a flight, or the id of a claim that another cache of this process may hold.
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

// holdsUp reports whether what is waited for comes only after what inside is a part of: it is what that brings, or inside of it somebody
// waits for what that brings, and so on.
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
