package shop_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

func TestTwoMoreProcesses(t *testing.T) {
	inShop(t, nil, func(t *testing.T, s *shop.Shop) {
		press(t, s, panel.TwoMore, "4 processes")
		f := during(t, s, 2*time.Second)
		if s.Settings().Processes != 4 || f.Failed > 0 || f.Pages == 0 {
			t.Errorf("%+v", f)
		}
		for range 4 {
			s.Press(t.Context(), panel.TwoMore)
		}
		if _, err := s.Press(t.Context(), panel.TwoMore); err == nil || !strings.Contains(err.Error(), "processes must be 1 to 12, got 14") {
			t.Error(err)
		}
		if _, err := s.Press(t.Context(), "nosuch"); err == nil || !strings.Contains(err.Error(), `there is no button "nosuch"`) {
			t.Error(err)
		}
	})
}

func TestSettingsAreChecked(t *testing.T) {
	bad := panel.Settings{Shoppers: 2001, Pause: 1, TTL: 1, Query: 0, Connections: 0, Processes: 0}
	err := bad.Validate()
	for _, name := range []string{"shoppers must be 0 to 2000, got 2001", "pause must", "ttl must", "query must", "connections must", "processes must"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not say %q", err, name)
		}
	}
	if _, err := shop.Open(t.Context(), shop.Options{}); err == nil {
		t.Error("a shop without a Redis opens")
	}
}

// A person can shop, too.
func TestAPersonShops(t *testing.T) {
	inShop(t, func(s *panel.Settings) { s.Shoppers = 0 }, func(t *testing.T, s *shop.Shop) {
		cookie := ""
		get := func(method, path string) (int, string) {
			q := httptest.NewRequestWithContext(t.Context(), method, path, nil)
			q.Header.Set("Cookie", cookie)
			w := httptest.NewRecorder()
			s.ServeHTTP(w, q)
			if set := w.Result().Cookies(); len(set) > 0 {
				cookie = set[0].Name + "=" + set[0].Value
			}
			return w.Code, w.Body.String()
		}
		for _, step := range []struct {
			method, path string
			status       int
			says         string
		}{
			{"GET", "/", 200, "All we have"},
			{"GET", "/product/1", 200, "<h1>Teapot</h1>"},
			{"GET", "/product/99", 404, ""},
			{"GET", "/product/x", 404, ""},
			{"GET", "/mine?viewed=1", 200, "In your cart: nothing."},
			{"POST", "/cart/1", 303, ""},
			{"POST", "/cart/99", 404, ""},
			{"POST", "/login", 204, ""},
			{"GET", "/mine?viewed=2", 200, `In your cart: <a href="/shop/product/1">Teapot</a>.`},
			{"GET", "/mine?viewed=1", 200, `Seen with it: <a href="/shop/product/2">Rucksack</a>.`},
		} {
			if status, body := get(step.method, step.path); status != step.status || !strings.Contains(body, step.says) {
				t.Errorf("%s %s: %d %.400q", step.method, step.path, status, body)
			}
		}
	})
}

// A browser's page shows where each of its parts came from, and how long it is kept; other clients get the page as it is stored.
func TestWhereAPageCameFrom(t *testing.T) {
	inShop(t, func(s *panel.Settings) {
		s.Shoppers, s.Processes, s.Pages, s.TTL, s.Early = 0, 1, true, time.Minute, false
	}, func(t *testing.T, s *shop.Shop) {
		get := func(path, accept string) (string, http.Header) {
			t.Helper()
			q := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
			q.Header.Set("Accept", accept)
			q.Header.Set("If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
			w := httptest.NewRecorder()
			s.ServeHTTP(w, q)
			pass(100 * time.Millisecond) // until the process has been told of its own change
			return w.Body.String(), w.Header()
		}
		rows := func(body string) string { // as text
			_, table, _ := strings.Cut(body, "Where this page came from")
			table, _, _ = strings.Cut(table, "</table>")
			_, table, _ = strings.Cut(table, "<tbody>")
			return strings.TrimSpace(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(strings.ReplaceAll(strings.ReplaceAll(table, "<td", "|<td"), "\n", "; "), ""))
		}
		const browser = "text/html,application/xhtml+xml"
		for i, want := range []string{
			`^the page\|its handler\|–\|–; teapot\|the database\|–\|(5\d|6\d)\.\d s;$`,
			`^the page\|(Redis|memory)\|under 1 s\|under 1 s; teapot\|the database, when the page was made; now in (Redis|memory)\|0\.1 s\|`,
			`^the page\|memory\|under 1 s\|under 1 s; teapot\|the database, when the page was made; now in (Redis|memory)\|0\.2 s\|`,
		} {
			body, h := get("/product/1", browser)
			if got := rows(body); !regexp.MustCompile(want).MatchString(got) || !strings.HasSuffix(body, "</html>\n") || h.Get("Cache-Control") != "private, no-store" {
				t.Errorf("%d: %q, want %q; %v", i, got, want, h)
			}
		}
		pass(10 * time.Second)
		if body, _ := get("/product/1", browser); !strings.HasPrefix(rows(body), "the page|its handler|–|–; teapot|memory|") && !strings.HasPrefix(rows(body), "the page|its handler|–|–; teapot|Redis|") {
			t.Errorf("of a page that has ended: %q", rows(body))
		}
		if body, _ := get("/", browser); strings.Count(rows(body), ";") != 9 || !strings.Contains(body, "10.37 €") {
			t.Errorf("the front page: %q", rows(body))
		}
		if body, h := get("/product/1", "*/*"); strings.Contains(body, "came from") || strings.Contains(h.Get("Cache-Control"), "private") {
			t.Errorf("for a client that is no browser: %v %.200s", h, body)
		}
		if body, _ := get("/mine?viewed=1&parts=1", "*/*"); !strings.Contains(body, `what you looked at<td class="words">Redis<td>–<td>10.0 s`) || !strings.Contains(body, `your cart<td class="words">nowhere`) {
			t.Errorf("what is one's own: %s", body)
		}
		if body, _ := get("/mine?viewed=1", "*/*"); strings.Contains(body, "<table") {
			t.Errorf("a shopper of the load sees where a page is kept: %s", body)
		}
		if body, h := get("/product/99", browser); !strings.Contains(body, "404") || strings.Contains(h.Get("Cache-Control"), "no-store") {
			t.Errorf("a page that is not there: %v %s", h, body)
		}
	})
}

func TestClosedIsClosed(t *testing.T) {
	s, err := shop.Open(t.Context(), shop.Options{Redis: redistest.Start(t).Client().Options()})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(t.Context()), s.Close(t.Context())); err != nil {
		t.Error(err)
	}
	w := httptest.NewRecorder()
	if s.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code != http.StatusServiceUnavailable {
		t.Error(w.Code)
	}
	if err := s.Set(t.Context(), panel.Default); !errors.Is(err, mayfly.ErrClosed) {
		t.Error(err)
	}
}

// On a real Redis the shop works as on ours, and leaves nothing there.
func TestOnARealRedis(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	next := panel.Default
	next.Mayfly, next.Shoppers, next.Pause, next.Query = true, 30, 50*time.Millisecond, 5*time.Millisecond
	rdb.Set(t.Context(), "theirs", "v", time.Hour)
	s, err := shop.Open(t.Context(), shop.Options{Redis: &redis.Options{Addr: srv.Addr()}, Settings: next, RedisTimeout: 20 * time.Second, Catalogue: shop.Catalogue{Rate: 50}})
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var pages, kept, keys int64
	for end := time.Now().Add(time.Minute); pages < 200 || kept == 0 || keys < 10; <-tick.C {
		f := s.Figures(t.Context())
		pages, kept, keys = pages+f.Pages, kept+f.FromMemory, int64(f.Keys)
		if f.Failed > 0 || time.Now().After(end) {
			t.Fatalf("%d pages, %d from the cache, %d keys: %+v", pages, kept, keys, f)
		}
	}
	press(t, s, panel.EmptyRedis, "Redis is emptied")
	for end := time.Now().Add(time.Minute); s.Figures(t.Context()).Answered == 0; <-tick.C {
		if time.Now().After(end) {
			t.Fatal("nobody of the crowd is answered")
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if rdb.Exists(t.Context(), "theirs").Val() != 1 {
		t.Error("a key of somebody else's is gone")
	}
	if left := rdb.Keys(t.Context(), "mayfly-demo:*").Val(); len(left) > 0 {
		t.Errorf("the shop left behind %.300v", left)
	}
}
