package sliding

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Middleware limits the requests of a handler. key returns what a request counts against, such as an account or an address; if it reports
// false, the request is not limited. Answers carry RateLimit-Limit, -Remaining and -Reset. A request over the limit gets 429 with Retry-After,
// and does not reach the handler. If Redis cannot be asked, the request passes with FailOpen and gets 503 without it. A key that is invalid in
// Redis gets 503 too: see [Limiter.Allow]. A nil key or handler panics when it is mounted, as in [http.ServeMux.Handle].
func (l *Limiter[K]) Middleware(key func(*http.Request) (K, bool)) func(http.Handler) http.Handler {
	if key == nil {
		panic("sliding: Middleware got a nil key: give it the function that names whose limit a request counts against")
	}
	return func(next http.Handler) http.Handler {
		if f, ok := next.(http.HandlerFunc); next == nil || ok && f == nil {
			panic("sliding: Middleware got a nil handler: give it the one whose requests are to be limited")
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if k, limited := key(r); !limited || l.admit(w, r, k) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// admit decides about one request, tells the client how much is left, and answers the request if it is refused.
func (l *Limiter[K]) admit(w http.ResponseWriter, r *http.Request, key K) bool {
	d, err := l.Allow(r.Context(), key, 1)
	status := http.StatusServiceUnavailable
	if err == nil {
		status = http.StatusTooManyRequests
		w.Header().Set("RateLimit-Limit", strconv.Itoa(d.Limit))
		w.Header().Set("RateLimit-Remaining", strconv.Itoa(d.Remaining))
		w.Header().Set("RateLimit-Reset", seconds(d.ResetAfter))
		if !d.Allowed {
			w.Header().Set("Retry-After", seconds(d.RetryAfter))
		}
	}
	if !d.Allowed {
		http.Error(w, http.StatusText(status), status)
	}
	return d.Allowed
}

// seconds returns d for a header: in whole seconds, rounded up.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
