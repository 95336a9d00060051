package navsession_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/navsession"
	"github.com/mayflycache/mayfly/redistest"
)

// plainWriter has nothing that a ResponseWriter may lack.
type plainWriter struct{ http.ResponseWriter }

// ableWriter tells what reaches the server's writer.
type ableWriter struct {
	http.ResponseWriter
	read, pushed bool
}

func (w *ableWriter) ReadFrom(src io.Reader) (int64, error) {
	w.read = true
	return io.Copy(plainWriter{w.ResponseWriter}, src)
}

func (w *ableWriter) Push(string, *http.PushOptions) error {
	w.pushed = true
	return nil
}

// Behind a Middleware, a handler can use the server's writer as it can without: take the connection, set deadlines, send a file.
func TestAHandlerHasTheServersWriter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page")
	expect.OK(t, os.WriteFile(file, []byte("a file"), 0o600))
	var able *ableWriter
	s := newSite(t, redistest.Start(t), func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		switch r.URL.Path {
		case "/hijack":
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntaken")
			rw.Flush()
		case "/controlled":
			for what, err := range map[string]error{
				"read deadline": control.SetReadDeadline(time.Now().Add(time.Minute)), "write deadline": control.SetWriteDeadline(time.Now().Add(time.Minute)),
				"full duplex": control.EnableFullDuplex(), "flush": control.Flush(),
			} {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			io.WriteString(w, "controlled")
		case "/file":
			f := expect.Value(os.Open(file))(t)
			defer f.Close()
			io.Copy(w, f)
		case "/push":
			if err := w.(http.Pusher).Push("/style.css", nil); err != nil {
				t.Error(err)
			}
			w.(io.StringWriter).WriteString("pushed")
		}
	}, navsession.MiddlewareOptions{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		able = &ableWriter{ResponseWriter: w}
		if r.URL.Path == "/file" || r.URL.Path == "/push" {
			w = able
		}
		s.handler.ServeHTTP(w, r)
	}))
	defer web.Close()
	get := func(path, want string) {
		t.Helper()
		r := expect.Value(http.NewRequestWithContext(t.Context(), "GET", web.URL+path, nil))(t)
		r.Header.Set("User-Agent", browser)
		r.AddCookie(&http.Cookie{Name: "user", Value: "ada"})
		resp := expect.Value(http.DefaultClient.Do(r))(t)
		defer resp.Body.Close()
		if body, err := io.ReadAll(resp.Body); string(body) != want || err != nil {
			t.Errorf("%s: got %q, %v", path, body, err)
		}
	}
	get("/hijack", "taken")
	get("/controlled", "controlled")
	if get("/file", "a file"); !able.read {
		t.Error("a file does not reach the server's ReadFrom, which sends it without copying")
	}
	if get("/push", "pushed"); !able.pushed {
		t.Error("a push does not reach the server")
	}
	s.close(t)
	if got := s.paths(t); got != "/push /file /controlled" {
		t.Errorf("recorded %q: a connection that was taken is no page", got)
	}
}

// A feature that the server's writer lacks is an error, and CloseNotify works as frameworks expect.
func TestAHandlerWithoutTheServersWriter(t *testing.T) {
	s := newSite(t, redistest.Start(t), func(w http.ResponseWriter, r *http.Request) {
		if _, _, err := w.(http.Hijacker).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("hijack: %v", err)
		}
		if err := w.(http.Pusher).Push("/style.css", nil); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("push: %v", err)
		}
		closed := w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Error("nobody says that the client is gone")
		}
		fmt.Fprint(bufio.NewWriter(w), "hello")
	}, navsession.MiddlewareOptions{})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(gone, "GET", "/", nil)
	r.Header.Set("User-Agent", browser)
	s.handler.ServeHTTP(plainWriter{httptest.NewRecorder()}, r)
	s.close(t)
}
