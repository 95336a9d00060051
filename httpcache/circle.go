package httpcache

import (
	"context"
	"sync"

	"github.com/mayflycache/mayfly/internal/client/flight"
)

// Pages whose handlers show each other, all of them missing, would wait in a circle: the load of one for a page that another loads, which
// waits for the first. Who would close it asks the handler by itself. What a request is inside of its context says, so this knows
// circles within a process, through all its caches. Where other processes are in it too, it ends with Shared.Wait.

// waits are those of requests that handlers make.
type waits struct {
	mu sync.Mutex // guards on
	on map[*flight.Flight[outcome]][]*asking
}

var nested waits // of all caches: a circle may go through several

// enter says that a request with ctx is about to wait for f, until leave is called; or else that f would wait for the request.
func (w *waits) enter(ctx context.Context, f *flight.Flight[outcome]) (leave func(), circle bool) {
	inside, _ := ctx.Value(askingKey{}).(*asking)
	if inside == nil {
		return func() {}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holdsUp(inside, f) {
		return func() {}, true
	}
	if w.on == nil {
		w.on = make(map[*flight.Flight[outcome]][]*asking)
	}
	w.on[f] = append(w.on[f], inside)
	return func() { w.leave(inside, f) }, false
}

func (w *waits) leave(inside *asking, f *flight.Flight[outcome]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, a := range w.on[f] {
		if a == inside {
			last := len(w.on[f]) - 1
			w.on[f][i] = w.on[f][last]
			w.on[f] = w.on[f][:last]
			break
		}
	}
	if len(w.on[f]) == 0 {
		delete(w.on, f)
	}
}

// holdsUp reports whether f lands only after what inside is a part of: it is what that is asked for, or inside of it somebody waits for what
// is, and so on.
func (w *waits) holdsUp(inside *asking, f *flight.Flight[outcome]) bool {
	known := make(map[*flight.Flight[outcome]]bool)
	for todo := []*asking{inside}; len(todo) > 0; {
		a := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for ; a != nil; a = a.around {
			switch {
			case a.flight == nil || known[a.flight]:
			case a.flight == f:
				return true
			default:
				known[a.flight] = true
				todo = append(todo, w.on[a.flight]...)
			}
		}
	}
	return false
}
