package httppeers

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	"github.com/gin-gonic/gin"
	gorillaws "github.com/gorilla/websocket"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/navsession"
	"github.com/mayflycache/mayfly/redistest"
)

// What frameworks want of a ResponseWriter they have behind a Middleware of visits.
func TestFrameworksBehindVisits(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.GET("/stream", func(c *gin.Context) {
		said := []string{"one", "two"}
		c.Stream(func(w io.Writer) bool { // asks for CloseNotify, and panics without
			if len(said) == 0 {
				return false
			}
			io.WriteString(w, said[0])
			said = said[1:]
			return true
		})
	})
	const greeting = "hello"
	handler := http.NewServeMux()
	handler.Handle("/stream", engine)
	handler.HandleFunc("/gorilla", func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&gorillaws.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		conn.WriteMessage(gorillaws.TextMessage, []byte(greeting))
	})
	handler.HandleFunc("/coder", func(w http.ResponseWriter, r *http.Request) {
		conn, err := coder.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		conn.Write(r.Context(), coder.MessageText, []byte(greeting))
		conn.Close(coder.StatusNormalClosure, "")
	})
	visits := mayfly.Must(navsession.New(mayfly.Namespace[string, navsession.Page]{
		Name: "visits", Redis: redistest.Start(t).Client(), Prefix: "visits:", TTL: time.Minute,
	}, navsession.Options{Pages: 10}))
	everything := func(*http.Request, bool) bool { return false } // also what a Middleware would pass by
	m := mayfly.Must(navsession.NewMiddleware(visits, func(*http.Request) (string, bool) { return "ada", true }, navsession.MiddlewareOptions{Bot: everything, Asset: everything}))
	defer m.Close(context.Background())
	web := httptest.NewServer(m.Wrap(handler))
	defer web.Close()

	resp, err := http.Get(web.URL + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); string(body) != "onetwo" || err != nil {
		t.Errorf("gin streamed %q, %v", body, err)
	}
	socket := strings.Replace(web.URL, "http", "ws", 1)
	one, _, err := gorillaws.DefaultDialer.Dial(socket+"/gorilla", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, said, err := one.ReadMessage(); string(said) != greeting || err != nil {
		t.Errorf("gorilla said %q, %v", said, err)
	}
	one.Close()
	two, _, err := coder.Dial(t.Context(), socket+"/coder", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, said, err := two.Read(t.Context()); string(said) != greeting || err != nil {
		t.Errorf("coder said %q, %v", said, err)
	}
	two.CloseNow()
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if pages, err := visits.Recent(t.Context(), "ada", 10); len(pages) != 1 || pages[0].URL != "/stream" || err != nil {
		t.Errorf("recorded %v, %v", pages, err)
	}
}
