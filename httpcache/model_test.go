package httpcache_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// route is one handler, and what it says of its answers.
type route struct {
	control  string
	vary     []string
	tag      bool // it has an ETag of what it looks at, and answers 304
	cookie   int  // one in so many answers sets one; 0: none
	fails    int  // one in so many calls fails
	status   int
	edits    bool // it changes its request
	streams  bool
	takes    time.Duration
	lifetime time.Duration // as control says
	swr      time.Duration
	sie      time.Duration
	shared   bool // its answers may be shared at all
	strict   bool // never stale
	secret   bool // answers to requests with Authorization may be shared too
	search   int  // one in so many answers says that the parameter "u" does not count; 0: none
}

var controls = []route{
	{},
	{control: "no-store"},
	{control: "private, max-age=60"},
	{control: "no-cache", sie: 0},
	{control: "max-age=0"},
	{control: "max-age=0, must-revalidate", strict: true},
	{control: "no-cache, max-age=60"},
	{control: "max-age=2", lifetime: 2 * time.Second, sie: 10 * time.Minute, shared: true},
	{control: "public, max-age=5", lifetime: 5 * time.Second, sie: 10 * time.Minute, shared: true, secret: true},
	{control: "max-age=3, must-revalidate", lifetime: 3 * time.Second, shared: true, strict: true, secret: true},
	{control: "s-maxage=2, max-age=0", lifetime: 2 * time.Second, shared: true, strict: true, secret: true},
	{control: "max-age=1, stale-while-revalidate=3", lifetime: time.Second, swr: 3 * time.Second, sie: 10 * time.Minute, shared: true},
	{control: "max-age=0, stale-while-revalidate=3", swr: 3 * time.Second, sie: 3 * time.Second, shared: true},
	{control: "max-age=1, stale-if-error=4", lifetime: time.Second, sie: 4 * time.Second, shared: true},
	{control: "max-age=0, stale-if-error=4", sie: 4 * time.Second, shared: true},
}

var varies = [][]string{nil, nil, nil, {"Cookie"}, {"X-Color"}, {"Accept-Language", "X-Color"}, {"Cookie", "X-Color"}, {"*"}}

var queries = []string{"", "u=1", "u=2", "q=1&u=1", "q=1&u=2", "q=2"}

// asksFor is what a client asks for.
func asksFor(host, path, query string) string {
	if query != "" {
		query = "?" + query
	}
	return "http://" + host + path + query
}

// made is one call of a handler.
type made struct {
	of      *wish
	route   *route
	inner   string
	cookie  bool // it set one
	search  bool // it said that "u" does not count
	method  string
	body    []byte // nil: it was not finished
	sent    time.Time
	validAt []time.Time // when it was made, and found valid
}

// wish is one request.
type wish struct {
	user, color, language, secret string
	host, path, query             string
	begun                         time.Time
}

// looks is everything that handlers look at.
func (w *wish) looks(inner string) string {
	return strings.Join([]string{w.user, w.color, w.language, w.secret, w.host, inner, w.query}, "|")
}

func (w *wish) says(field string) string {
	return map[string]string{"Cookie": w.user, "X-Color": w.color, "Accept-Language": w.language}[field]
}

// model knows which users may see which answers.
type model struct {
	t      testing.TB
	routes []*route
	slack  time.Duration // of the clock

	searches bool // the caches read No-Vary-Search

	mu     sync.Mutex // guards the rest
	wishes []*wish
	calls  []*made
	purges map[string]time.Time // when the latest purge of a URL returned
	rng    *rand.Rand
	shared int // answers made for another user's request
}

func (m *model) chance(n int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return n > 0 && m.rng.IntN(n) == 0
}

func (m *model) pick(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rng.IntN(n)
}

func newModel(t testing.TB, rng *rand.Rand, slack time.Duration) *model {
	m := &model{t: t, rng: rng, slack: slack, purges: map[string]time.Time{}}
	for range 6 {
		r := controls[rng.IntN(len(controls))]
		r.vary, r.tag, r.status = varies[rng.IntN(len(varies))], rng.IntN(2) == 0, []int{200, 200, 200, 404, 302}[rng.IntN(5)]
		r.cookie, r.fails = []int{0, 0, 3}[rng.IntN(3)], []int{0, 0, 4}[rng.IntN(3)]
		r.edits, r.streams = rng.IntN(2) == 0, rng.IntN(3) == 0
		r.search = []int{0, 1, 1, 3}[rng.IntN(4)]
		r.takes = time.Duration(rng.IntN(60)) * time.Millisecond
		m.routes = append(m.routes, &r)
	}
	return m
}

// ServeHTTP is all handlers.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inner := r.URL.Path
	rt := m.routes[int(inner[len(inner)-1]-'0')]
	asker, _ := strconv.Atoi(r.Header.Get("X-Wish")) // a background renewal no longer has it
	m.mu.Lock()
	of := m.wishes[asker]
	m.mu.Unlock()
	call := &made{of: of, route: rt, inner: inner, method: r.Method, sent: time.Now(), cookie: m.chance(rt.cookie), search: m.chance(rt.search)}
	tag := strconv.Quote(of.looks(inner))
	m.mu.Lock()
	number := len(m.calls)
	m.calls = append(m.calls, call)
	m.mu.Unlock()
	asked := r.Header.Get("If-None-Match")
	if rt.edits {
		clear(r.Header)
		r.URL.Path, r.URL.RawQuery, r.Host, r.Method = "/edited", "", "edited.example", "PUT"
	}
	work(rt.takes)
	fails := m.chance(rt.fails)
	if fails && m.chance(2) {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	if rt.control != "" {
		h.Set("Cache-Control", rt.control)
	}
	for _, v := range rt.vary {
		h.Add("Vary", v)
	}
	if call.search {
		h.Set("No-Vary-Search", `params=("u")`)
	}
	if call.cookie {
		h.Set("Set-Cookie", "of="+of.user)
	}
	if fails {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	now := time.Now()
	if rt.tag {
		h.Set("Etag", tag)
		if asked == tag && rt.status == 200 && !call.cookie {
			m.mu.Lock()
			for _, other := range m.calls {
				if other.route == rt && other.of.looks(other.inner) == of.looks(inner) && len(other.validAt) > 0 {
					other.validAt = append(other.validAt, now)
				}
			}
			m.mu.Unlock()
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	body := fmt.Appendf(nil, "%06d made for %s;", number, of.looks(inner))
	m.mu.Lock()
	call.validAt = append(call.validAt, now)
	if !fails {
		call.body = body
	}
	m.mu.Unlock()
	w.WriteHeader(rt.status)
	w.Write(body[:10])
	if rt.streams {
		w.(http.Flusher).Flush()
		work(rt.takes / 2)
		if m.chance(8) {
			panic(http.ErrAbortHandler)
		}
	}
	w.Write(body[10:])
}

// mayServe reports whether an answer may still be shared at a time: fresh, or as stale as the answer or the client allows.
func (m *model) mayServe(c *made, at time.Time, demands string) bool {
	if demands == "max-stale" && c.route.lifetime > 0 && !c.route.strict {
		return true
	}
	window := c.route.lifetime + c.route.swr
	if demands == "min-fresh=2" {
		window = c.route.lifetime - 2*time.Second
	} else if !c.route.strict && c.route.fails > 0 || c.route.streams {
		window = max(window, c.route.lifetime+c.route.sie)
	}
	if demands == "max-age=1" && c.route.fails == 0 && !c.route.streams {
		window = min(window, time.Second)
	}
	return window >= 0 && c.route.lifetime+c.route.swr+c.route.sie > 0 && slices.ContainsFunc(c.validAt, func(v time.Time) bool { return at.Sub(v) <= window+m.slack })
}

// wrong says why a user must not see an answer.
func (m *model) wrong(w *wish, inner string, demands string, body []byte, partial bool) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	number, err := strconv.Atoi(string(body[:min(6, len(body))]))
	if err != nil || number >= len(m.calls) {
		return "it is nobody's"
	}
	c := m.calls[number]
	if !partial && !bytes.Equal(body, c.body) {
		return "it is not whole"
	}
	if c.of == w {
		return ""
	}
	m.shared++
	url := w.host + w.path
	one := func(query string) bool { // with that of c
		id := strings.NewReplacer("u=1", "", "u=2", "")
		return query == c.of.query || c.search && m.searches && strings.Trim(id.Replace(query), "&") == strings.Trim(id.Replace(c.of.query), "&")
	}
	purged := func() bool {
		for _, query := range queries {
			at := m.purges[url+query]
			if !at.IsZero() && one(query) && c.sent.Before(at) && at.Before(w.begun) {
				return true
			}
		}
		return false
	}
	switch {
	case c.of.host != w.host || c.of.path != w.path:
		return "another URL's"
	case !one(w.query):
		return "another query's: " + c.of.query
	case c.inner != inner:
		return "another inner URL's"
	case c.method != http.MethodGet:
		return "the answer to a " + c.method
	case purged():
		return "it was purged before"
	case c.cookie:
		return "it came with a cookie"
	case c.of.looks(c.inner) == w.looks(inner) && !c.cookie && !strings.Contains(c.route.control, "no-store") && !strings.Contains(c.route.control, "private"):
		return "" // the handler answers anybody so
	case demands == "no-cache":
		return "a new one was demanded"
	case !c.route.shared:
		return "it was not for others: " + c.route.control
	case c.of.secret != "" && !c.route.secret:
		return "it was asked with credentials"
	case !m.mayServe(c, w.begun, demands):
		return "it is too old: " + c.route.control
	}
	for _, field := range c.route.vary {
		if field == "*" || c.of.says(field) != w.says(field) {
			return "it varies by " + field
		}
	}
	return ""
}
