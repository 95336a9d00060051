package shop

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/demo/strategy"
)

// forPerson reports whether a browser requests a page: then a person may want to know where its parts came from. Simulated shoppers do not.
func forPerson(r *http.Request) bool {
	_, product := productAt(r.URL.Path)
	return r.Method == http.MethodGet && (product || r.URL.Path == "/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// productAt returns the product whose page is at a path.
func productAt(path string) (id int, ok bool) {
	text, ok := strings.CutPrefix(path, "/product/")
	if ok {
		id, ok = productID(text)
	}
	return id, ok
}

// withParts serves a page with a table that says where its parts came from. The page is the same for everybody, cached or made. The table is for
// this request alone, so the result is cached nowhere.
func (p *process) withParts(w http.ResponseWriter, r *http.Request) {
	ctx, way := embark(r.Context())
	ask := r.Clone(ctx)
	for _, h := range []string{"If-None-Match", "If-Modified-Since", "Range", "If-Range"} {
		ask.Header.Del(h)
	}
	whole := &wholePage{answer: answer{header: make(http.Header)}}
	p.serve.ServeHTTP(whole, ask)
	h := w.Header()
	for name, values := range whole.header {
		h[name] = values
	}
	for _, name := range []string{"Content-Length", "Etag", "Last-Modified"} {
		h.Del(name)
	}
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'")
	before, after, has := bytes.Cut(whole.body.Bytes(), []byte(room))
	var b bytes.Buffer
	b.Write(before)
	if has {
		b.WriteString(`<div class="card" id="parts">`)
		renderParts(&b, "Where this page came from", p.partsOf(ctx, r.URL.Path, way.page(whole.status, whole.header), whole.header))
		b.WriteString("</div>")
		b.Write(after)
	}
	w.WriteHeader(whole.status)
	w.Write(b.Bytes())
}

// partsOf returns the page, and each product on it, with where they are cached now.
func (p *process) partsOf(ctx context.Context, path string, from source, h http.Header) []part {
	page := part{name: "the page", from: "its handler", age: "–", left: "–"}
	status := h.Get("Cache-Status")
	kept := strings.Contains(status, "; hit")
	if kept {
		_, ttl, _ := strings.Cut(status, "; ttl=")
		ttl, _, _ = strings.Cut(ttl, ";")
		page.from, page.age, page.left = words(from), whole(h.Get("Age")), whole(ttl)
	}
	parts := []part{page}
	ids := []int{}
	if id, ok := productAt(path); ok {
		ids = append(ids, id)
	} else {
		for id := range products {
			ids = append(ids, id)
		}
	}
	sources := strings.Split(h.Get(productHeader), ", ")
	for i, id := range ids {
		one := part{name: strings.ToLower(names[id]), from: words(source(sources[min(i, len(sources)-1)]))}
		copied := p.products.Kept(ctx, id)
		one.age, one.left = seconds(copied.Age), seconds(copied.Left)
		if kept {
			one.from += ", when the page was made; now " + where(copied)
		}
		parts = append(parts, one)
	}
	return parts
}

// words describes a source in words.
func words(s source) string {
	switch s {
	case fromMemory:
		return "memory"
	case fromStale:
		return "memory or Redis, stale: a new one is being made"
	case waited:
		return "the database"
	}
	return string(s)
}

// where describes the place of a copy in words.
func where(k strategy.Kept) string {
	switch k.In {
	case mayfly.OutcomeHitLocal:
		return "in memory"
	case "":
		return "nowhere"
	}
	return "in Redis"
}

// whole returns a number of whole seconds, rounded down, as HTTP has them.
func whole(text string) string {
	switch n, err := strconv.Atoi(text); {
	case err != nil:
		return "–"
	case n < 0:
		return "over"
	case n == 0:
		return "under 1 s"
	}
	return text + " s"
}

// seconds formats a duration, if there is one.
func seconds(d time.Duration) string {
	if d <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// wholePage is an answer with its body.
type wholePage struct {
	answer
	body bytes.Buffer
}

func (w *wholePage) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}
