package httpcache_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// Whatever a handler declares about queries, however it changes its mind, and whatever clients send: no request gets the answer to a query
// that this answer does not declare equivalent to its own.
func TestNobodyGetsAnothersQuery(t *testing.T) {
	start, shared := effort.Seed(t, *seed), 0
	for i := range uint64(effort.Times(1, 60)) {
		seed := start + i
		searching(t, func(t *testing.T, opt setup) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			pick := func(n int) int { mu.Lock(); defer mu.Unlock(); return rng.IntN(n) }
			opt.SharedPass = time.Second
			rules := []string{"", `key-order`, `params`, `params, except=("id")`, `params=("a" "%61")`, `params=("`, `key-order, params=("id")`, `params, except=()`, "\x00", `params=("` + strings.Repeat("%41", 900) + `")`}
			pieces := []string{"id=1", "id=2", "a=1", "a=2", "%61=1", "a=1;id=2", "&&", "%zz", "id", "=", "id=%00", "i%64=1", "+=+", strings.Repeat("y", 300), "id=1%26a=2"}
			h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rule := rules[pick(len(rules))]
				w.Header().Set("Cache-Control", []string{fresh, "max-age=1", "max-age=1, stale-while-revalidate=9", "no-store", "private"}[pick(5)])
				if pick(4) == 0 {
					w.Header().Set("Vary", "X-Color")
				}
				w.Header()["no-vary-search"] = []string{rule}
				time.Sleep(time.Duration(pick(30)) * time.Millisecond)
				if pick(20) == 0 {
					panic(http.ErrAbortHandler)
				}
				if pick(20) == 0 {
					w.WriteHeader(500)
				}
				fmt.Fprintf(w, "%s\n%s\n%s", rule, r.URL.RawQuery, r.Header.Get("X-Color"))
			}))
			var all sync.WaitGroup
			for range 12 {
				all.Go(func() {
					for range 30 {
						var q []string
						for range pick(4) {
							q = append(q, pieces[pick(len(pieces))])
						}
						query := strings.Join(q, "&")
						color := fmt.Sprint(pick(2))
						func() {
							defer func() { recover() }()
							if pick(15) == 0 {
								ask(h, "POST", shopPath+"?"+query)
								return
							}
							res := ask(h, "GET", shopPath+"?"+query, "X-Color: "+color)
							b := make([]byte, 10000)
							n, _ := res.Body.Read(b)
							parts := strings.SplitN(string(b[:n]), "\n", 3)
							if len(parts) < 3 {
								return
							}
							s := rfc9111.ParseSearch(http.Header{"No-Vary-Search": {parts[0]}})
							if parts[1] != query {
								mu.Lock()
								shared++
								mu.Unlock()
								if s.Same("?"+query) != s.Same("?"+parts[1]) {
									t.Errorf("%q got that of %q under %q: %v", query, parts[1], parts[0], res.Header["Cache-Status"])
								}
							}
							if res.Header.Get("Vary") != "" && parts[2] != color {
								t.Errorf("color %q got %q", color, parts[2])
							}
						}()
						if pick(5) == 0 {
							time.Sleep(time.Duration(pick(900)) * time.Millisecond)
						}
					}
				})
			}
			all.Wait()
			synctest.Wait()
		})
	}
	if t.Logf("%d answers were made for another query", shared); shared == 0 {
		t.Error("nothing was shared")
	}
}
