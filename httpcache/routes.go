package httpcache

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// routes are the overrides, matched as a ServeMux matches handlers.
type routes struct {
	mux  *http.ServeMux // nil: none
	says map[string]string
	on   []int // statuses besides the successes
}

// overridable lists the statuses, besides the successes, to which an override can apply.
var overridable = []int{http.StatusMovedPermanently, http.StatusPermanentRedirect, http.StatusNotFound, http.StatusGone}

// newRoutes returns an error for what a ServeMux would panic about.
func newRoutes(override map[string]string, on []int) (r routes, err error) {
	if len(override) == 0 {
		return r, nil
	}
	pattern := ""
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pattern %q: %v", pattern, p)
		}
	}()
	r = routes{http.NewServeMux(), override, on}
	for pattern = range override {
		if override[pattern] == "" {
			return r, fmt.Errorf("pattern %q: its Cache-Control is empty", pattern)
		}
		if err := rfc9111.CheckCacheControl(override[pattern]); err != nil {
			return r, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if method, _, spaced := strings.Cut(pattern, " "); spaced && method != http.MethodGet && method != http.MethodHead {
			return r, fmt.Errorf("pattern %q: only answers to GET and HEAD are stored", pattern)
		}
		r.mux.Handle(pattern, http.NotFoundHandler())
	}
	return r, nil
}

// apply gives a response the Cache-Control of its route, if the response has none of its own. Only a success and the statuses of OverrideOn get
// one: other redirections and failures are not meant to be kept. A path that a ServeMux would redirect has no route. The answer to a request with
// credentials is for nobody else.
func (rs routes) apply(r *http.Request, status int, header http.Header, targeted []string) {
	meant := status >= 200 && status <= 299 || slices.Contains(rs.on, status)
	if rs.mux == nil || !meant || r.Header["Authorization"] != nil || !clean(r.URL.Path) {
		return
	}
	says := rfc9111.Canonical(header)
	for _, name := range append([]string{"Cache-Control", "Expires"}, targeted...) {
		if len(says[http.CanonicalHeaderKey(name)]) > 0 {
			return
		}
	}
	if _, pattern := rs.mux.Handler(r); pattern != "" {
		header.Set("Cache-Control", rs.says[pattern])
	}
}

// clean reports whether a path is in the form that a ServeMux accepts.
func clean(p string) bool { return p == "" || path.Clean(p) == strings.TrimSuffix(p, "/") || p == "/" }
