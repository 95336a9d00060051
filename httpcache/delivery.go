package httpcache

import (
	"net/http"
	"sync"
)

// delivery sends a body to its client while the handler still writes it: the handler is as fast as memory, and a client that
// is slow, stands still or has left holds up nobody but itself.
type delivery struct {
	w http.ResponseWriter

	mu       sync.Mutex // guards the rest
	more     sync.Cond  // signalled when there is something to do
	idle     sync.Cond  // signalled when there is not
	body     []byte     // what the handler has written: never changed, only appended to
	sent     int        // how much of it the client has, or the goroutine has in hand
	flush    bool
	ended    bool // nothing comes after
	running  bool // the goroutine has something in hand
	started  bool
	err      error // the client's: from then on everything is dropped
	panicked any   // what w panicked with
}

func newDelivery(w http.ResponseWriter) *delivery {
	d := &delivery{w: w}
	d.more.L, d.idle.L = &d.mu, &d.mu
	return d
}

// send has the rest of body sent, which begins with what was sent before. The caller may append to it.
func (d *delivery) send(body []byte) { d.do(func() { d.body = body }) }

// push has what was sent before flushed to the client.
func (d *delivery) push() { d.do(func() { d.flush = true }) }

func (d *delivery) do(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil || d.panicked != nil {
		return
	}
	change()
	if !d.started {
		d.started = true
		go d.run() // ends with wait, which every delivery is ended by
	}
	d.more.Signal()
}

// drain waits until everything has been sent, or cannot be.
func (d *delivery) drain() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.running || d.sent < len(d.body) || d.flush {
		d.idle.Wait()
	}
	return d.err
}

// wait ends the delivery when everything has been sent. What the writer panicked with, it panics with here.
func (d *delivery) wait() {
	d.drain()
	d.mu.Lock()
	d.ended = true
	d.more.Signal()
	p := d.panicked
	d.mu.Unlock()
	if p != nil {
		panic(p)
	}
}

func (d *delivery) run() {
	for {
		d.mu.Lock()
		for d.sent == len(d.body) && !d.flush && !d.ended {
			d.idle.Broadcast()
			d.more.Wait()
		}
		b, flush := d.body[d.sent:], d.flush
		if len(b) == 0 && !flush {
			d.mu.Unlock()
			return
		}
		d.sent, d.flush, d.running = len(d.body), false, true
		d.mu.Unlock()

		panicked, err := d.write(b, flush)

		d.mu.Lock()
		d.running = false
		if d.err, d.panicked = err, panicked; err != nil || panicked != nil {
			d.body, d.sent, d.flush = nil, 0, false
		}
		d.mu.Unlock()
	}
}

func (d *delivery) write(b []byte, flush bool) (panicked any, err error) {
	defer func() { panicked = recover() }()
	if len(b) > 0 {
		if _, err = d.w.Write(b); err != nil {
			return nil, err
		}
	}
	if flush {
		http.NewResponseController(d.w).Flush() // one that cannot be flushed could not be without us either
	}
	return nil, nil
}
