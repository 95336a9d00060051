package httpcache

import (
	"fmt"
	"net/http"
)

// routes are the overrides, found as a ServeMux finds handlers.
type routes struct {
	mux  *http.ServeMux // nil: none
	says map[string]string
}

// newRoutes returns an error for what a ServeMux would panic about.
func newRoutes(override map[string]string) (r routes, err error) {
	if len(override) == 0 {
		return r, nil
	}
	pattern := ""
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pattern %q: %v", pattern, p)
		}
	}()
	r = routes{http.NewServeMux(), override}
	for pattern = range override {
		if override[pattern] == "" {
			return r, fmt.Errorf("pattern %q: its Cache-Control is empty", pattern)
		}
		r.mux.Handle(pattern, http.NotFoundHandler())
	}
	return r, nil
}

// apply gives the response to a request the Cache-Control of its route, if it says nothing of its own.
func (rs routes) apply(r *http.Request, header http.Header, targeted []string) {
	if rs.mux == nil {
		return
	}
	for _, name := range append([]string{"Cache-Control", "Expires"}, targeted...) {
		if len(header[http.CanonicalHeaderKey(name)]) > 0 {
			return
		}
	}
	if _, pattern := rs.mux.Handler(r); pattern != "" {
		header.Set("Cache-Control", rs.says[pattern])
	}
}
