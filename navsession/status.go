package navsession

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
)

// statusWriter remembers the status of a response, and is else the writer that it wraps. It has every optional interface that handlers and
// frameworks ask a ResponseWriter for, some of them without asking whether it has them; what the wrapped writer cannot do is
// [http.ErrNotSupported].
type statusWriter struct {
	http.ResponseWriter
	ctx    context.Context // of the request
	status int             // 0: nothing was written yet
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK { // the 1xx come before
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// WriteString is io.StringWriter's.
func (w *statusWriter) WriteString(s string) (int, error) {
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom lets a file take the server's fastest way, which may be sendfile.
func (w *statusWriter) ReadFrom(src io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, src) }

// Flush is for handlers that ask for an http.Flusher.
func (w *statusWriter) Flush() { http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack hands the connection to the handler. What it says there is no page.
func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}

// CloseNotify is for frameworks that still ask for it: it tells the end of the request's context.
func (w *statusWriter) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { closed <- true })
	return closed
}

// Push is HTTP/2's, where the server has it.
func (w *statusWriter) Push(target string, o *http.PushOptions) error {
	if p, ok := w.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, o)
	}
	return http.ErrNotSupported
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
