package server

import (
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// pipeNetwork is the network of in-memory connections, as net.Addr names it.
const pipeNetwork = "pipe"

// pipeSize is how many bytes a pipe buffers in each direction.
const pipeSize = 64 << 10

// pipe is one end of an in-memory connection. It behaves like a TCP connection where it can: it is buffered, so that a write does not wait
// for the peer to read; deadlines work; after one end is closed, the other reads what was sent and then io.EOF, and its writes fail;
// CloseWrite ends only one direction. It waits only on sync.Cond, which is durably blocking in a testing/synctest bubble.
type pipe struct {
	in, out       *stream
	local, remote net.Addr
}

// Pipe returns the two ends of an in-memory connection; id tells connections apart.
func Pipe(id int64) (client, server net.Conn) {
	a, b := newStream(), newStream()
	here := &net.UnixAddr{Net: pipeNetwork, Name: pipeNetwork + ":" + strconv.FormatInt(id, 10)}
	there := &net.UnixAddr{Net: pipeNetwork, Name: pipeNetwork + ":0"}
	return &pipe{a, b, here, there}, &pipe{b, a, there, here}
}

func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.in.read(b)
	return n, p.wrap("read", err)
}

func (p *pipe) Write(b []byte) (int, error) {
	n, err := p.out.write(b, true)
	return n, p.wrap("write", err)
}

// tryWrite writes as much of b as fits, without waiting.
func (p *pipe) tryWrite(b []byte) (int, error) { return p.out.write(b, false) }

func (p *pipe) Close() error {
	p.in.closeReader()
	p.out.closeWriter(net.ErrClosed)
	return nil
}

// CloseWrite tells the peer that nothing more will come, like a TCP half-close.
func (p *pipe) CloseWrite() error {
	p.out.closeWriter(syscall.EPIPE)
	return nil
}

func (p *pipe) LocalAddr() net.Addr  { return p.local }
func (p *pipe) RemoteAddr() net.Addr { return p.remote }

func (p *pipe) SetReadDeadline(t time.Time) error  { return p.in.reader.set(t) }
func (p *pipe) SetWriteDeadline(t time.Time) error { return p.out.writer.set(t) }

func (p *pipe) SetDeadline(t time.Time) error {
	p.in.reader.set(t)
	return p.out.writer.set(t)
}

// wrap wraps an error as package net does.
func (p *pipe) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: pipeNetwork, Source: p.local, Addr: p.remote, Err: err}
}

// stream is one direction of a pipe.
type stream struct {
	mu     sync.Mutex
	buf    []byte // buf[from:] is written but not yet read
	from   int
	shut   error // non-nil after the writing side has ended: the error of further Writes
	gone   bool  // the reading side has ended
	reader side
	writer side
}

func newStream() *stream {
	s := new(stream)
	s.reader.changed.L = &s.mu
	s.writer.changed.L = &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.gone:
			return 0, net.ErrClosed
		case s.reader.expired():
			return 0, os.ErrDeadlineExceeded
		case s.from < len(s.buf) || len(b) == 0:
			n := copy(b, s.buf[s.from:])
			if s.from += n; s.from == len(s.buf) {
				s.buf, s.from = s.buf[:0], 0
			}
			s.writer.call()
			return n, nil
		case s.shut != nil:
			return 0, io.EOF
		}
		s.writer.call() // wakes awaitReader
		s.reader.wait()
	}
}

// write writes b or, unless wait, as much of it as fits.
func (s *stream) write(b []byte, wait bool) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.shut != nil:
			return n, s.shut
		case s.gone:
			return n, syscall.EPIPE
		case wait && s.writer.expired():
			return n, os.ErrDeadlineExceeded
		}
		if fits := min(len(b)-n, pipeSize-(len(s.buf)-s.from)); fits > 0 {
			if cap(s.buf)-len(s.buf) < fits {
				s.buf, s.from = append(s.buf[:0], s.buf[s.from:]...), 0
			}
			s.buf = append(s.buf, b[n:n+fits]...)
			n += fits
			s.reader.call()
		}
		if n == len(b) || !wait {
			return n, nil
		}
		s.writer.wait()
	}
}

// listened reports whether the reader has read everything and waits for more.
func (s *stream) listened() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reader.waiting > 0 && s.from == len(s.buf)
}

// awaitReader waits until everything is read and, if again is set, the reader waits for more; or until the reader is gone.
func (s *stream) awaitReader(ctx context.Context, again bool) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.writer.call()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.gone && (s.from < len(s.buf) || again && s.reader.waiting == 0) {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.writer.wait()
	}
	return nil
}

// closeReader ends the reading side; unread bytes are lost.
func (s *stream) closeReader() { s.end(func() { s.gone, s.buf, s.from = true, nil, 0 }) }

// closeWriter ends the writing side; what was written can still be read.
func (s *stream) closeWriter(err error) { s.end(func() { s.shut = err }) }

// end marks one side as ended with note, and wakes both.
func (s *stream) end(note func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	note()
	for _, side := range []*side{&s.reader, &s.writer} {
		if side.timer != nil {
			side.timer.Stop()
			side.rings = time.Time{}
		}
		side.call()
	}
}

// side is one end of a stream: the goroutines waiting there, and their deadline. Clients move their deadlines with every command, so a
// deadline sets a timer only once a goroutine waits, and a timer that rings too early, because the deadline was moved, is set again only if
// one still waits.
type side struct {
	changed  sync.Cond
	waiting  int
	deadline time.Time
	timer    *time.Timer
	rings    time.Time // when the timer rings; zero: not set
}

// set moves the deadline. It never fails.
func (d *side) set(t time.Time) error {
	d.changed.L.Lock()
	defer d.changed.L.Unlock()
	d.deadline = t
	d.call()
	return nil
}

func (d *side) expired() bool { return !d.deadline.IsZero() && !time.Now().Before(d.deadline) }

// call wakes the waiting goroutines, which check again.
func (d *side) call() {
	if d.waiting > 0 {
		d.changed.Broadcast()
	}
}

func (d *side) wait() {
	if !d.deadline.IsZero() && (d.rings.IsZero() || d.deadline.Before(d.rings)) {
		d.rings = d.deadline
		if d.timer == nil {
			d.timer = time.AfterFunc(time.Until(d.deadline), d.ring)
		} else {
			d.timer.Reset(time.Until(d.deadline))
		}
	}
	d.waiting++
	d.changed.Wait()
	d.waiting--
}

func (d *side) ring() {
	d.changed.L.Lock()
	defer d.changed.L.Unlock()
	d.rings = time.Time{}
	d.call()
}
