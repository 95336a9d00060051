package httpcache_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/httpcache"
)

// RFC 9875: an answer names the groups it is in, and the answer to a change names the groups of its own origin that it invalidates.
func TestCacheGroups(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		c := opened(t, options(t, rdb))
		h := c.Handler(&origin{serve: func(w http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" {
				set(w.Header(), []string{"Cache-Control: " + fresh, fmt.Sprintf("Cache-Groups: %q, \"all of it\"", r.URL.Path[1:])})
			}
			if voids := r.Header.Get("X-Voids"); voids != "" {
				w.Header().Set("Cache-Group-Invalidation", voids)
			}
			fmt.Fprint(w, "page")
		}})
		urls := []string{"http://a.example/scripts", "http://a.example/pages", "http://b.example/pages", "https://a.example/pages"}
		for _, x := range []struct {
			name string
			void func()
			gone []int
		}{
			{"a change", func() { ask(h, "POST", "http://a.example/change", `X-Voids: "pages"`) }, []int{1}},
			{"a change of several", func() { ask(h, "DELETE", "http://a.example/change", `X-Voids: "pages", "scripts"`) }, []int{0, 1}},
			{"a group with spaces", func() { ask(h, "PATCH", "http://b.example/change", `X-Voids: "all of it"`) }, []int{2}},
			{"a safe method", func() { ask(h, "GET", "http://a.example/look", `X-Voids: "pages"`) }, nil},
			{"what is no list", func() { ask(h, "POST", "http://a.example/change", `X-Voids: pages`) }, nil},
			{"another case", func() { ask(h, "POST", "http://a.example/change", `X-Voids: "Pages"`) }, nil},
			{"a purge", func() {
				if err := c.Purge(t.Context(), httpcache.Target{URL: "http://a.example/", Group: "all of it"}); err != nil {
					t.Error(err)
				}
			}, []int{0, 1, 3}},
		} {
			for range 2 {
				for _, url := range urls {
					get(t, h, url)
				}
			}
			x.void()
			gone := map[int]bool{}
			for _, i := range x.gone {
				gone[i] = true
			}
			for i, url := range urls {
				if _, status := get(t, h, url); isHit(status) == gone[i] {
					t.Errorf("%s: then %s: %s", x.name, url, status)
				}
			}
		}
		if err := c.Purge(t.Context(), httpcache.Target{URL: "/relative", Group: "x"}); err == nil {
			t.Error("a group of no origin was purged")
		}
	})
}
