package httpcache

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// With Options.Report the cache decides and stores as always, and the handler answers every request. The handler's answer is
// compared with what the cache would have served: from the store, or, for simultaneous requests, the answer they would have waited for.

// RouteReport says how many answers the cache would have shared on one route.
type RouteReport struct {
	Route    string // the pattern of an [http.ServeMux], or the first segment of the path where there is none
	Requests int    // that the cache could have answered
	Shared   int    // that the cache would have answered with an answer made for another request
	Differ   int    // of the shared ones, those whose answer from the handler had another status or body
	Example  string // the URL of the latest one that differed
}

// Report returns the counts of [Options].Report since the cache was made, starting with the routes that differ most. A page that changes with
// time differs from the copy stored earlier. A page that differs between simultaneous requests is personal, and must say so before the cache
// is turned on.
func (c *Cache) Report() []RouteReport { return c.reports.list() }

// reports are the counts by route.
type reports struct {
	mu     sync.Mutex // guards routes
	routes map[string]*RouteReport
}

// maxRoutes bounds the routes that are counted separately. All others are counted as one.
const maxRoutes = 1000

func (rs *reports) add(route string, count func(r *RouteReport)) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.routes[route] == nil && len(rs.routes) >= maxRoutes {
		route = "others"
	}
	r := rs.routes[route]
	if r == nil {
		if rs.routes == nil {
			rs.routes = make(map[string]*RouteReport)
		}
		r = &RouteReport{Route: route}
		rs.routes[route] = r
	}
	count(r)
}

func (rs *reports) list() (all []RouteReport) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.routes {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b RouteReport) int {
		return cmp.Or(cmp.Compare(b.Differ, a.Differ), strings.Compare(a.Route, b.Route))
	})
	return all
}

func routeOf(r *http.Request) string {
	if r.Pattern != "" {
		return r.Pattern
	}
	first, _, more := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if more {
		first += "/"
	}
	return "/" + first
}

var errDiffers = errors.New("the handler's answer differs from the one that the cache would have served: see Report")

// seen is a response writer that records the client's response.
type seen struct {
	http.ResponseWriter
	says   string // its Cache-Status
	status int
	sum    hash.Hash
}

func (s *seen) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s *seen) WriteHeader(status int) {
	if status >= 200 && s.status == 0 {
		if s.status = status; s.says != "" {
			s.Header().Add("Cache-Status", s.says)
		}
	}
	s.ResponseWriter.WriteHeader(status)
}

func (s *seen) Write(b []byte) (int, error) {
	if s.status == 0 {
		s.WriteHeader(http.StatusOK)
	}
	s.sum.Write(b)
	return s.ResponseWriter.Write(b)
}

// differs reports whether a response differs from what was seen. Partial and conditional answers are not compared.
func (s *seen) differs(method string, r *response) bool {
	switch cmp.Or(s.status, http.StatusOK) {
	case http.StatusPartialContent, http.StatusNotModified, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable:
		return false
	case r.status:
	default:
		return true
	}
	want := sha256.Sum256(r.body)
	return method != http.MethodHead && string(s.sum.Sum(nil)) != string(want[:])
}

// report lets the handler answer, and compares its answer with the cache's.
func (x *exchange) report() {
	c := x.cache
	x.look(x.r.Context())
	would, s := x.s.response, &seen{ResponseWriter: x.w, sum: sha256.New()}
	due := false
	if would != nil {
		switch would.policy.Decide(x.q, time.Now()) {
		case rfc9111.Revalidate:
			would = nil
		case rfc9111.Renew:
			due = x.r.Method == http.MethodGet && x.r.Header["Range"] == nil
		}
	}
	var fill filling
	var joined *flight.Flight[outcome]
	switch {
	case would != nil:
		s.says = c.opt.Server + "-report; hit"
		if due { // a cache that serves would renew it by an answer of its own; a reporting one has the client's answer
			within, cancel := c.within(x.r.Context(), x.asked)
			fill = filling{claim: c.guard.Renew(within, x.s.slot, x.s.found).Claim, renews: true}
			cancel()
		}
	case x.shareable():
		if f, lead := x.join(); !lead {
			joined = f
		} else if fill.flight = f; x.s.unasked == nil && !x.s.flooded {
			within, cancel := c.within(x.r.Context(), x.asked)
			fill.claim = c.guard.Claim(within, x.s.slot, x.s.found).Claim
			cancel()
		}
	}
	x.w, x.s.response = s, nil // the handler is not asked to revalidate anything
	done := false
	defer func() {
		if !done && joined != nil { // the handler panicked: a joined request must still wait, but not here
			c.works.Start(func() { joined.Wait(canceled, x.began) })
		}
	}()
	x.forward(fill)
	done = true
	route := routeOf(x.r)
	c.reports.add(route, func(r *RouteReport) { r.Requests++ })
	if would != nil {
		x.compare(route, s, would)
	}
	if joined == nil {
		return
	}
	wait := func() {
		ctx, cancel := context.WithTimeout(c.works.Context(), c.opt.SharedWait)
		defer cancel()
		out, _, err := joined.Wait(ctx, x.began)
		if err == nil && out.response != nil && x.takes(out) {
			x.compare(route, s, out.response)
		}
	}
	if !c.works.Start(wait) {
		joined.Wait(canceled, x.began)
	}
}

var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// compare counts a request that the cache would have answered with a response.
func (x *exchange) compare(route string, s *seen, would *response) {
	c, differs := x.cache, s.differs(x.r.Method, would)
	c.reports.add(route, func(r *RouteReport) {
		if r.Shared++; differs {
			r.Differ++
			r.Example = strings.TrimPrefix(x.key, c.prefix)
		}
	})
	if differs {
		c.tell(x.r.Context(), mayfly.Event{Kind: mayfly.KindWarning, Outcome: mayfly.OutcomeFailed, Key: x.s.slot, Err: errDiffers})
	}
}
