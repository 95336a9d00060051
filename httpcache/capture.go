package httpcache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// mode is what a capture does with the handler's output.
type mode uint8

const (
	undecided mode = iota // no final status yet
	through               // to the client, as the handler writes it
	storing               // to the client and into memory, to be stored
	swallow               // dropped: the client gets something else
)

// capture is the response writer of a decorated handler. The handler's output goes to the client at once, and is also kept while it may be
// stored. The handler has its own header until its status is final, so that fields set by handlers around the cache are neither stored nor lost.
type capture struct {
	w      http.ResponseWriter
	ctx    context.Context // the handler's context
	header http.Header     // the handler's header
	head   bool            // the request's method is HEAD: no body goes to the client
	limit  int64           // of the bytes that are kept
	bodies *bodies         // the cache's bodies in flight
	held   *held           // this body, where it is counted

	// decide says, once, what to do with a final answer. It may change header, which is sent next. If it returns a status other than
	// the handler's, the client gets that status, and no body.
	decide func(status int, header http.Header) (do mode, instead int)

	// drop is called when the body is no longer kept, with the reason: errTooLarge, errNoRoom, errForbidden or errHijacked.
	drop func(why error)

	// yield is called when the handler of an attempt is about to wait for its client.
	yield func()

	// leave is called when the handler has returned without an answer. It may change header, which the client may get.
	leave func(header http.Header)

	outer    []change // what writers around the cache made of the header when an interim answer passed them
	mode     mode
	left     bool // the handler has returned without an answer: later writes come from another handler
	status   int
	typed    bool // the client got a Content-Type or Content-Encoding that was not guessed
	hidden   bool // the client gets another status and no body
	body     []byte
	length   int64 // as declared by the handler, or -1
	written  int64
	broken   bool // the handler wrote more than it declared
	flushed  bool // the handler flushed while a body was kept
	first    int  // length of the body at the first flush
	hijacked bool
	over     atomic.Bool // the handler has returned: its later writes are dropped
	delivery *delivery
}

func (c *Cache) newCapture(w http.ResponseWriter, r *http.Request, ctx context.Context) *capture {
	header := w.Header().Clone()
	if header == nil {
		header = make(http.Header)
	}
	return &capture{w: w, ctx: ctx, header: header, head: r.Method == http.MethodHead, limit: c.opt.MaxBody, bodies: &c.bodies, yield: func() {}}
}

var (
	errTooLarge  = errors.New("it is larger than what is stored")
	errForbidden = errors.New("a handler around the cache forbade it when the header was sent")
	errHijacked  = errors.New("the handler took the connection")
	errReturned  = errors.New("httpcache: the handler has returned")
	errLonger    = errors.New("the body is longer than its Content-Length")
	errShorter   = errors.New("the body is shorter than its Content-Length")
	errStopped   = errors.New("the handler was told to stop")
)

// Header returns the handler's header.
func (c *capture) Header() http.Header {
	if c.left {
		return c.w.Header()
	}
	return c.header
}

// Unwrap lets [http.ResponseController] find deadlines and other abilities of the server's own writer.
func (c *capture) Unwrap() http.ResponseWriter { return c.w }

// WriteHeader passes interim answers on at once, and decides what happens to the final one. A second final answer is ignored.
func (c *capture) WriteHeader(status int) {
	if c.left {
		c.w.WriteHeader(status)
		return
	}
	if c.mode != undecided || c.over.Load() {
		return
	}
	if status < 100 || status > 999 { // panics as net/http does, before anything is decided
		panic(fmt.Sprintf("invalid WriteHeader code %v", status))
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		c.interim(status)
		return
	}
	rfc9111.Frame(c.header)
	c.status, c.length, c.typed = status, -1, isTyped(c.header)
	if n, err := strconv.ParseInt(c.header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		c.length = n
		c.header["Content-Length"] = c.header["Content-Length"][:1] // several lengths would make the end of the message ambiguous
	} else {
		delete(c.header, "Content-Length") // a malformed one reaches neither the client nor the store
	}
	do, instead := c.decide(status, c.header)
	c.mode = do
	if do == swallow {
		return
	}
	c.hidden = instead != status
	c.fillIn(c.w.Header()) // fields that the handler removed must not be sent
	if do == storing {
		c.delivery = newDelivery(c.w)
	}
	c.w.WriteHeader(instead) // writers around the cache may change the header now
	c.typed = c.typed || isTyped(c.w.Header())
	if do == storing && forbids(c.w.Header()) && !forbids(c.header) {
		c.keepNoMore(errForbidden)
	}
}

func isTyped(h http.Header) bool { return len(h["Content-Type"]) > 0 || len(h["Content-Encoding"]) > 0 }

// forbids reports whether a header keeps a response from being stored for others.
func forbids(h http.Header) bool {
	cc := rfc9111.ParseCacheControl(h)
	return cc.NoStore || cc.Private || slices.Contains(h["Vary"], "*")
}

// keepNoMore gives up a body that was to be stored. What was kept has gone to the client then, or cannot go, and the rest goes straight there, at
// the client's pace.
func (c *capture) keepNoMore(why error) error {
	c.body, c.mode = nil, through
	c.drop(why)
	err := c.delivery.wait()
	c.held.done()
	c.held = nil
	return err
}

// Write is called by the handler. While the answer is kept, Write never waits for the client.
func (c *capture) Write(b []byte) (int, error) {
	if c.left {
		return c.w.Write(b)
	}
	if c.over.Load() {
		return 0, errReturned
	}
	c.WriteHeader(http.StatusOK) // if there is no status yet
	if c.hijacked {
		return 0, http.ErrHijacked
	}
	if c.mode == through {
		if c.hidden {
			return len(b), nil
		}
		return c.w.Write(b)
	}
	if c.status == http.StatusNoContent || c.status == http.StatusNotModified {
		return 0, http.ErrBodyNotAllowed
	}
	if c.written += int64(len(b)); c.length >= 0 && c.written > c.length {
		c.broken = true
		return 0, http.ErrContentLength
	}
	if c.mode == swallow {
		return len(b), nil
	}
	if why := c.keep(b); why != nil {
		if err := c.keepNoMore(why); err != nil {
			return 0, err
		}
		return c.Write(b)
	}
	if !c.hidden && !c.head {
		c.delivery.send(c.body)
	}
	return len(b), nil
}

// keep appends b to the kept body, or says why it cannot.
func (c *capture) keep(b []byte) (why error) {
	need := int64(len(c.body) + len(b))
	if need > c.limit {
		return errTooLarge
	}
	if have := int64(cap(c.body)); need > have {
		grown := min(max(need, 2*have, 4<<10), c.limit)
		if c.length >= need {
			grown = min(grown, c.length)
		}
		if grown > uncounted {
			if c.held == nil {
				c.held, have = c.bodies.new(), 0
			}
			if !c.held.grow(grown - have) {
				return errNoRoom
			}
		}
		c.body = append(make([]byte, 0, grown), c.body...)
	}
	c.body = append(c.body, b...)
	return nil
}

// sniffed returns the bytes from which net/http detected the Content-Type, if the handler set none: the bytes before the first flush, or the
// whole body. (net/http's buffer holds more than it examines.)
func (c *capture) sniffed() []byte {
	if c.flushed {
		return c.body[:c.first]
	}
	return c.body
}

// ReadFrom lets a body that is not kept take the server's fastest way to the client, which may be sendfile.
func (c *capture) ReadFrom(src io.Reader) (n int64, err error) {
	var buf []byte
	for (c.mode != through || c.hidden || c.hijacked) && !c.left {
		if buf == nil {
			buf = make([]byte, 32<<10)
		}
		chunk := io.LimitReader(src, int64(len(buf)))
		m, err := io.CopyBuffer(struct{ io.Writer }{c}, chunk, buf)
		if n += m; err != nil || m < int64(len(buf)) {
			return n, err
		}
	}
	m, err := io.Copy(c.w, src)
	return n + m, err
}

// Flush sends the bytes written so far to the client.
func (c *capture) Flush() { c.FlushError() }

// FlushError is Flush for [http.ResponseController].
func (c *capture) FlushError() error {
	if c.left {
		return http.NewResponseController(c.w).Flush()
	}
	if c.over.Load() {
		return errReturned
	}
	c.WriteHeader(http.StatusOK) // if there is no status yet
	switch c.mode {
	case storing:
		if !c.flushed {
			c.flushed, c.first = true, len(c.body)
		}
		c.delivery.push()
	case through:
		return http.NewResponseController(c.w).Flush()
	}
	return nil
}

// Hijack hands the connection to the handler. Nothing is stored then.
func (c *capture) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if c.over.Load() {
		return nil, nil, errReturned
	}
	if c.delivery != nil {
		c.yield() // the client may be slow
		c.delivery.drain()
	}
	conn, rw, err := http.NewResponseController(c.w).Hijack()
	if err == nil {
		c.hijacked, c.mode = true, through
		c.drop(errHijacked)
	}
	return conn, rw, err
}

// CloseNotify is for frameworks that still use it. It signals the end of the handler's context, which ends with the client only if
// the answer is for that client alone.
func (c *capture) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	context.AfterFunc(c.ctx, func() { closed <- true })
	return closed
}

// Push is HTTP/2 server push, where the server supports it.
func (c *capture) Push(target string, o *http.PushOptions) error {
	if p, ok := c.w.(http.Pusher); ok {
		return p.Push(target, o)
	}
	return http.ErrNotSupported
}

// returned is called when the handler has returned. A handler that wrote nothing has not answered. net/http would send an empty 200 for it, but
// a framework whose handlers return errors answers afterwards, on this writer or on its own.
func (c *capture) returned() {
	if c.mode == undecided && !c.hijacked {
		c.leave(c.header)
		c.fillIn(c.w.Header())
		c.left = true
	}
	c.over.Store(true)
}

// deliver returns when everything has gone to the client, or cannot go. The handler has returned by then, or never will. If it sent nothing, a
// handler around the cache may answer.
func (c *capture) deliver() {
	c.over.Store(true)
	if c.unsent() {
		apply(c.outer, c.w.Header(), true)
	}
	if c.delivery != nil {
		c.delivery.wait()
	}
}

// finish is called at the very end, and sends what follows the body.
func (c *capture) finish() {
	c.deliver()
	if c.mode != swallow && !c.hijacked && !c.left {
		maps.Insert(c.w.Header(), c.trailers())
	}
}

// flaw returns why the body must not be stored, or nil.
func (c *capture) flaw() error {
	switch {
	case c.hijacked:
		return errHijacked
	case c.broken:
		return errLonger
	case !c.head && c.length > c.written && c.status != http.StatusNotModified:
		return errShorter
	case c.ctx.Err() != nil: // a cancelled handler may return as if it were done
		return errStopped
	}
	return nil
}

// trailers are the fields that the handler put into its header after the status: the announced ones under their names, and the
// others under names with Go's prefix for trailers.
func (c *capture) trailers() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for name, values := range c.header {
			if strings.HasPrefix(name, http.TrailerPrefix) && len(values) > 0 && !yield(name, values) {
				return
			}
		}
		for _, line := range c.header["Trailer"] {
			for name := range strings.SplitSeq(line, ",") {
				name = http.CanonicalHeaderKey(strings.TrimSpace(name))
				if values := c.header[name]; len(values) > 0 && !yield(name, values) {
					return
				}
			}
		}
	}
}
