package sliding

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"time"
)

// Middleware limits the requests of a handler. key names whose limit a request counts against, an account or an address; what
// it reports false for is not limited. Answers carry RateLimit-Limit, -Remaining and -Reset; a request too many is
// answered 429 with Retry-After, and the handler does not see it. If Redis cannot be asked, the request passes with
// FailOpen, and is else answered 503.
func (l *Limiter[K]) Middleware(key func(*http.Request) (K, bool)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			k, limited := key(r)
			if !limited || l.admit(r.Context(), w.Header(), k, func(status int) { http.Error(w, http.StatusText(status), status) }) {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// admit decides about one request, writes what is to be known about it to h, and refuses it if it must.
func (l *Limiter[K]) admit(ctx context.Context, h http.Header, key K, refuse func(status int)) bool {
	d, err := l.Allow(ctx, key, 1)
	if err != nil {
		if !d.Allowed {
			refuse(http.StatusServiceUnavailable)
		}
		return d.Allowed
	}
	h.Set("RateLimit-Limit", strconv.Itoa(d.Limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(d.Remaining))
	h.Set("RateLimit-Reset", seconds(d.ResetAfter))
	if !d.Allowed {
		h.Set("Retry-After", seconds(d.RetryAfter))
		refuse(http.StatusTooManyRequests)
	}
	return d.Allowed
}

// seconds is d as headers have it: whole, and none too early.
func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
