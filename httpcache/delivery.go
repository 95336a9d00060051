package httpcache

import (
	"net/http"
	"sync"
)

// delivery sends a body to its client while the handler still writes it. The handler never waits for the client, and a client that is slow,
// stalls or leaves delays only itself.
type delivery struct {
	w http.ResponseWriter

	mu       sync.Mutex // guards the rest
	idle     sync.Cond  // signalled when the goroutine ends
	body     []byte     // what the handler has written: never changed, only appended to
	sent     int        // the number of its bytes that the client has, or that the goroutine is writing
	flush    bool
	first    int   // the number of its bytes before the first flush; see notYet and done
	ended    bool  // nothing comes after this body
	running  bool  // there is a goroutine, which exists only while there is something to send
	err      error // from writing to the client: afterwards everything is dropped
	panicked any   // what w panicked with
}

// Values of first before it is known, and when it no longer matters.
const (
	notYet = -1
	done   = -2
)

func newDelivery(w http.ResponseWriter) *delivery {
	d := &delivery{w: w, first: notYet}
	d.idle.L = &d.mu
	return d
}

// send queues the rest of body, which begins with the bytes sent before. The caller may append to body.
func (d *delivery) send(body []byte) { d.do(func() { d.body = body }) }

// push flushes the bytes sent so far to the client.
func (d *delivery) push() {
	d.do(func() {
		if d.flush = true; d.first == notYet {
			d.first = len(d.body)
		}
	})
}

func (d *delivery) do(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil || d.panicked != nil || d.ended {
		return
	}
	change()
	if !d.running && (d.sent < len(d.body) || d.flush) {
		d.running = true
		go d.run() // every delivery ends with wait, which waits for it
	}
}

// drain waits until everything has been sent, or cannot be.
func (d *delivery) drain() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drainLocked()
}

func (d *delivery) drainLocked() {
	for d.running {
		d.idle.Wait()
	}
}

// wait ends the delivery when everything has been sent. Nothing is written afterwards. It returns the client's error. If the writer
// panicked, wait panics with the same value.
func (d *delivery) wait() error {
	d.mu.Lock()
	d.drainLocked()
	d.ended = true
	p, err := d.panicked, d.err
	d.mu.Unlock()
	if p != nil {
		panic(p)
	}
	return err
}

func (d *delivery) run() {
	d.mu.Lock()
	for d.sent < len(d.body) || d.flush {
		to, flush := len(d.body), d.flush
		if d.first >= 0 { // in exactly these bytes net/http looks for the Content-Type
			to, d.first = d.first, done
		}
		b := d.body[d.sent:to]
		d.sent, d.flush = to, to < len(d.body)
		d.mu.Unlock()
		panicked, err := d.write(b, flush)
		d.mu.Lock()
		if d.err, d.panicked = err, panicked; err != nil || panicked != nil {
			d.body, d.sent, d.flush = nil, 0, false
		}
	}
	d.running = false
	d.idle.Broadcast()
	d.mu.Unlock()
}

func (d *delivery) write(b []byte, flush bool) (panicked any, err error) {
	defer func() { panicked = recover() }()
	if len(b) > 0 {
		if _, err = d.w.Write(b); err != nil {
			return nil, err
		}
	}
	if flush {
		http.NewResponseController(d.w).Flush() // a writer that cannot flush could not do so without the cache either
	}
	return nil, nil
}
