package httpcache_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

// Users of a site with random handlers send requests at once, through two processes. Each answer says which call of the handler made it, and a
// model that knows nothing of the cache says who may see it: the user that requested it; users whom the handler cannot distinguish from that
// one; and, while it is fresh, everybody for whom its header allows it.

var seed = flag.Uint64("seed", 0, "of the sites whose handlers are made by chance; 0 draws one")

// work is what handlers do: they wait for a while, which is real time with a real Redis.
func work(d time.Duration) { time.Sleep(d) }

// ask sends one random request, and judges its answer.
func (m *model) ask(user int, site http.Handler) {
	w := &wish{
		user: fmt.Sprint("u=", user), color: []string{"", "red", "blue"}[m.pick(3)], language: []string{"", "en, de", "de, en"}[m.pick(3)],
		host: []string{"a.example", "b.example"}[m.pick(2)], path: fmt.Sprint("/of/", m.pick(6)), begun: time.Now(),
		query: queries[max(m.pick(len(queries)+3)-3, 0)],
	}
	method := http.MethodGet
	switch m.pick(12) {
	case 0:
		method = http.MethodHead
	case 1:
		w.secret = "Bearer " + w.user
	}
	m.mu.Lock()
	number := len(m.wishes)
	m.wishes = append(m.wishes, w)
	m.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, asksFor(w.host, w.path, w.query), nil)
	for field, value := range map[string]string{"X-Wish": strconv.Itoa(number), "Cookie": w.user, "X-Color": w.color, "Accept-Language": w.language, "Authorization": w.secret} {
		if value != "" {
			r.Header.Set(field, value)
		}
	}
	demands := []string{"", "", "", "", "", "no-cache", "max-age=0", "max-stale", "min-fresh=2", "max-age=1", "only-if-cached"}[m.pick(11)]
	if demands != "" {
		r.Header.Set("Cache-Control", demands)
	}
	switch m.pick(10) {
	case 0:
		r.Header.Set("Range", "bytes=0-7")
	case 1:
		r.Header.Set("If-None-Match", strconv.Quote(w.looks(w.path)))
	case 2:
		time.AfterFunc(time.Duration(m.pick(50))*time.Millisecond, cancel)
	}
	answer := httptest.NewRecorder()
	inner := w.path
	if rewritten, ok := site.(*tenants); ok {
		inner = rewritten.inner(w.user, w.path)
	}
	aborted := func() (aborted bool) {
		defer func() { aborted = recover() != nil }()
		site.ServeHTTP(answer, r)
		return false
	}()
	res := answer.Result()
	body, _ := io.ReadAll(res.Body)
	for _, cookie := range res.Header["Set-Cookie"] {
		if cookie != "of="+w.user && cookie != "session="+w.user {
			m.t.Errorf("%s got the cookie %q", w.user, cookie)
		}
	}
	if session := strings.Join(res.Header["X-Session"], ","); session != "" && session != w.user {
		m.t.Errorf("%s got what was set around the cache for %s", w.user, session)
	}
	if aborted || len(body) == 0 || ctx.Err() != nil || res.StatusCode >= 500 {
		return
	}
	if why := m.wrong(w, inner, demands, body, res.StatusCode == http.StatusPartialContent); why != "" {
		m.t.Errorf("%s %s%s for %s (%s): %q: %s (%s)", method, w.host, w.path, w.looks(inner), demands, body, why, res.Header.Get("Cache-Status"))
	}
}

// tenants is a middleware that puts a user's tenant into the path, if there is one, and sets header fields around the cache. Nothing else
// shows the tenant.
type tenants struct{ next http.Handler }

func (s *tenants) inner(user, path string) string {
	if tenant := user[len(user)-1] % 3; tenant > 0 {
		return fmt.Sprint("/tenant-", tenant, path)
	}
	return path
}

func (s *tenants) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user := r.Header.Get("Cookie")
	r.URL.Path = s.inner(user, r.URL.Path)
	w.Header().Set("X-Session", user)
	if user == "u=1" {
		w.Header().Set("Set-Cookie", "session="+user)
	}
	s.next.ServeHTTP(w, r)
}

// playSite lets users send n requests in all to a site that is drawn from a seed, and returns how many answers were made for another's request.
func playSite(t testing.TB, rdb redis.UniversalClient, seed uint64, n int, slack time.Duration, wait func()) int {
	rng := rand.New(rand.NewPCG(seed, 0))
	m := newModel(t, rng, slack)
	opt := options(t, rdb)
	opt.Namespace.Prefix = fmt.Sprint(opt.Namespace.Prefix, seed, ":")
	opt.RenewBackground, opt.NoVarySearch = rng.IntN(2) == 0, rng.IntN(2) == 0
	m.searches = opt.NoVarySearch
	rewrites, localTier := rng.IntN(3) == 0, rng.IntN(2) == 0
	caches, sites := make([]*httpcache.Cache, 2), make([]http.Handler, 2)
	for i := range caches {
		if localTier {
			l := mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{opt.Namespace.Prefix}, MaxBytes: 1 << 20}))
			defer l.Close(context.Background())
			opt.Namespace.Local = l
		}
		caches[i] = mayfly.Must(opt.New())
		defer caches[i].Close(context.Background())
		if sites[i] = caches[i].Handler(m); rewrites {
			sites[i] = &tenants{sites[i]}
		}
	}
	const users = 20
	var all sync.WaitGroup
	for user := range users {
		all.Go(func() {
			for range n / users {
				m.ask(user, sites[m.pick(2)])
				if m.chance(3) {
					time.Sleep(time.Duration(m.pick(400)) * time.Millisecond)
				}
				if !localTier && m.chance(60) { // a local tier learns of it a little later
					path, query := fmt.Sprint("/of/", m.pick(6)), queries[m.pick(len(queries))]
					if caches[m.pick(2)].Purge(context.Background(), httpcache.Target{URL: asksFor("a.example", path, query)}) == nil {
						m.mu.Lock()
						m.purges["a.example"+path+query] = time.Now()
						m.mu.Unlock()
					}
				}
			}
		})
	}
	all.Wait()
	wait()
	return m.shared
}

// Nobody gets another's page.
func TestNobodyGetsAnothersPage(t *testing.T) {
	seed, shared := effort.Seed(t, *seed), 0
	for i := range effort.Times(2, 250) { // sites
		synctest.Test(t, func(t *testing.T) {
			shared += playSite(t, redistest.Start(t).Client(), seed+uint64(i), 400, 0, synctest.Wait)
		})
		if t.Failed() {
			t.Fatalf("site %d", seed+uint64(i))
		}
	}
	if t.Logf("%d answers were made for another request", shared); shared == 0 {
		t.Error("nothing was shared")
	}
}

// The same in real time, on a real Redis.
func TestNobodyGetsAnothersPageOnRedis(t *testing.T) {
	rdb := realredis.Start(t, realredis.Options{}).Client()
	seed := effort.Seed(t, *seed)
	var sites sync.WaitGroup
	for i := range effort.Times(2, 40) {
		sites.Go(func() { playSite(t, rdb, seed+uint64(i), 400, 500*time.Millisecond, func() {}) })
	}
	sites.Wait()
}
