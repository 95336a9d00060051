// Package dashboard shows a shop while it is open: a page with charts, switches, sliders and buttons, whose figures arrive as server-sent
// events, four times a second. The page is one file of plain HTML, CSS and JavaScript, and loads nothing from elsewhere.
//
//	r := dashboard.NewRecorder(s)
//	go r.Run(ctx)
//	http.ListenAndServe("127.0.0.1:8379", dashboard.Handler(s, r, dashboard.Options{}))
//
// A report is the same page with the recorded figures in it, to be kept as a file.
package dashboard

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

var (
	//go:embed page.html
	markup string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
	//go:embed icon.svg
	icon string
)

// Options set up a Handler.
type Options struct {
	// Redis says in words which Redis the shop uses.
	Redis string

	// Until ends the streams of events and tours, so that a server can shut down. Nil never ends them.
	Until context.Context

	// Host is the name or address that the server listens on. The handler serves requests for it, and for localhost and loopback
	// addresses. If Host is empty or the address that stands for all, such as 0.0.0.0, it serves requests for any address. It refuses requests for
	// other names, since any site's owner can make a name lead here.
	Host string

	// Metrics is served at /metrics.
	Metrics http.Handler
}

// about is what the page's script knows from the start.
type about struct {
	Redis     string   `json:"redis"`
	Fields    bool     `json:"fields"`    // the switch can be used
	Processes int      `json:"processes"` // at most
	Recorded  []moment `json:"recorded,omitempty"`
	Trials    []trial  `json:"trials,omitempty"`
	When      string   `json:"when,omitempty"`
}

// page writes the page: one file, with the parts inserted at their placeholders.
func page(w io.Writer, a about) error {
	knows, err := json.Marshal(a) // escapes whatever could end a script
	if err == nil {
		_, err = strings.NewReplacer("/*STYLE*/", style, "/*ICON*/", url.PathEscape(icon), "/*SCRIPT*/", script, "/*ABOUT*/{}", string(knows)).WriteString(w, markup)
	}
	if err != nil {
		return fmt.Errorf("dashboard: %w", err)
	}
	return nil
}

// Shop is the shop that the page shows: internal/demo/shop has one.
type Shop interface {
	http.Handler // serves its pages

	Settings() panel.Settings
	Set(context.Context, panel.Settings) error
	Press(context.Context, panel.Button) (says string, err error)
	Figures(context.Context) panel.Figures
	HasFields() bool // whether the switch for fields can be on
}

// Handler serves the page at /, the shop at /shop/, and what both need: they share their style.
func Handler(s Shop, r *Recorder, o Options) http.Handler {
	if o.Until == nil {
		o.Until = context.Background()
	}
	var touring atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-cache")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; frame-ancestors 'none'")
		page(w, about{Redis: o.Redis, Fields: s.HasFields(), Processes: panel.MostProcesses})
	})
	for path, file := range map[string][2]string{"/page.css": {"text/css; charset=utf-8", style}, "/favicon.ico": {"image/svg+xml", icon}} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", file[0])
			w.Header().Set("Cache-Control", "no-cache")
			io.WriteString(w, file[1])
		})
	}
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, q *http.Request) { events(w, q, r, o.Until.Done()) })
	mux.HandleFunc("POST /set", func(w http.ResponseWriter, q *http.Request) {
		next := s.Settings()
		says, err := turn(&next, q.FormValue("name"), q.FormValue("value"))
		if err == nil {
			err = s.Set(q.Context(), next)
		}
		answer(w, err, func() { r.Mark(says) })
	})
	mux.HandleFunc("POST /press", func(w http.ResponseWriter, q *http.Request) {
		b := panel.Button(q.FormValue("button"))
		says, err := s.Press(q.Context(), b)
		answer(w, err, func() { r.Pressed(b, says) })
	})
	mux.HandleFunc("POST /tour", func(w http.ResponseWriter, _ *http.Request) {
		if touring.CompareAndSwap(false, true) {
			go func() {
				defer touring.Store(false)
				r.Tour(o.Until, tourLasts)
			}()
		}
		w.WriteHeader(http.StatusNoContent)
	})
	if o.Metrics == nil {
		o.Metrics = http.NotFoundHandler()
	}
	mux.Handle("GET /metrics", o.Metrics)
	mux.Handle("/shop/", http.StripPrefix("/shop", s))
	return http.NewCrossOriginProtection().Handler(known(o.Host, mux)) // pages of other sites press no buttons here
}

// known serves requests for names that are known to be ours, and refuses all others, reads too. A page opened under a foreign name, which was
// then pointed here, counts for a browser as this server's own page (DNS rebinding).
func known(name string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		if !ours(host, name) {
			http.Error(w, fmt.Sprintf("this is the demo of mayfly, which does not answer to the name %.100q: open it by its address, or start it with --addr NAME:PORT", host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ours reports whether a request for host is meant for a server that listens at name.
func ours(host, name string) bool {
	if strings.EqualFold(host, "localhost") || name != "" && strings.EqualFold(host, name) {
		return true
	}
	asked, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(name)
	return asked.IsLoopback() || asked == at || name == "" || err == nil && at.IsUnspecified()
}

// tourLasts is how long the tour takes in a browser.
const tourLasts = 40 * time.Second

// answer reports the result of a request, and records what was done if it succeeded.
func answer(w http.ResponseWriter, err error, record func()) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	record()
	w.WriteHeader(http.StatusNoContent)
}

// events streams everything recorded so far as one event, and then each new moment.
func events(w http.ResponseWriter, q *http.Request, r *Recorder, done <-chan struct{}) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	history, coming, stop := r.listen()
	defer stop()
	control := http.NewResponseController(w)
	send := func(event string, what any) bool {
		text, err := json.Marshal(what)
		if err == nil {
			_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text)
		}
		return err == nil && control.Flush() == nil
	}
	for ok := send("history", history); ok; {
		select {
		case m := <-coming:
			ok = send("moment", m)
		case <-done:
			send("end", "the demo has ended")
			return
		case <-q.Context().Done():
			return
		}
	}
}

// Report writes the recorded figures as a self-contained page.
func Report(w io.Writer, s Shop, r *Recorder, o Options) error {
	r.mu.Lock()
	history, tried := r.historyLocked(most), r.trialsLocked()
	r.mu.Unlock()
	return page(w, about{Redis: o.Redis, Fields: s.HasFields(), Processes: panel.MostProcesses, Recorded: history, Trials: tried, When: time.Now().UTC().Format("2006-01-02 15:04 UTC")})
}
