package navsession

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
)

// statusWriter remembers the status of a response, and otherwise behaves as the writer that it wraps. It has every optional interface that
// handlers and frameworks expect of a ResponseWriter, since some of them do not check whether it is there. What the wrapped writer cannot do
// fails with [http.ErrNotSupported].
type statusWriter struct {
	http.ResponseWriter
	ctx    context.Context // of the request
	status int             // 0: nothing was written yet
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK { // 1xx responses come before it
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// WriteString implements io.StringWriter.
func (w *statusWriter) WriteString(s string) (int, error) {
	return io.WriteString(w.ResponseWriter, s)
}

// ReadFrom lets the server send a file the fastest way, which may be sendfile.
func (w *statusWriter) ReadFrom(src io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, src) }

// Flush is for handlers that ask for an http.Flusher.
func (w *statusWriter) Flush() { http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack hands the connection to the handler. What is sent there is not a page.
func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil && w.status == 0 {
		w.status = http.StatusSwitchingProtocols
	}
	return conn, rw, err
}

// CloseNotify is for frameworks that still use it: it reports the end of the request's context.
func (w *statusWriter) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { closed <- true })
	return closed
}

// Push implements http.Pusher, if the server does.
func (w *statusWriter) Push(target string, o *http.PushOptions) error {
	if p, ok := w.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, o)
	}
	return http.ErrNotSupported
}

// Unwrap is for http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
