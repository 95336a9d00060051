package httpcache_test

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/redis/go-redis/v9"
)

func aFreshAnswerIsServedFromTheCache(t *testing.T, rdb redis.UniversalClient) {
	o := says("hello", "Cache-Control: max-age=60", "X-Unknown: kept")
	h := must(t)(options(t, rdb).New()).Handler(o)
	body, status := get(t, h, "http://a.example/x?q=1")
	if want := regexp.MustCompile(`^mayfly; fwd=uri-miss; ttl=[0-9]+; stored; key="http://a.example/x\?q=1"$`); body != "hello" || !want.MatchString(status) {
		t.Errorf("first: %q, %q, want %v", body, status, want)
	}
	res := ask(h, "GET", "http://a.example/x?q=1")
	if got := res.Header.Get("Cache-Status"); !isHit(got) || res.Header.Get("X-Unknown") != "kept" || res.Header.Get("Age") != "0" || res.ContentLength != 5 {
		t.Errorf("second: %q, %v", got, res.Header)
	}
	for _, other := range []string{"http://a.example/x?q=2", "http://b.example/x?q=1", "https://a.example/x?q=1"} {
		if _, status := get(t, h, other); isHit(status) {
			t.Errorf("%s got the answer of another URL", other)
		}
	}
	if n := o.called(); n != 4 {
		t.Errorf("the handler was called %d times, want 4", n)
	}
}

func whatIsNotForOthersIsNotStored(t *testing.T, rdb redis.UniversalClient) {
	for i, c := range []struct {
		name            string
		request, answer []string
	}{
		{"a cookie", nil, []string{"Cache-Control: max-age=60", "Set-Cookie: a=b"}},
		{"private", nil, []string{"Cache-Control: private, max-age=60"}},
		{"no-store", nil, []string{"Cache-Control: no-store, max-age=60"}},
		{"nothing said", nil, nil},
		{"Vary: *", nil, []string{"Cache-Control: max-age=60", "Vary: Accept, *"}},
		{"a request with Authorization", []string{"Authorization: Basic YTpi"}, []string{"Cache-Control: max-age=60"}},
	} {
		o := says("secret", c.answer...)
		h := must(t)(options(t, rdb).New()).Handler(o)
		url := fmt.Sprint("http://a.example/", i)
		for range 3 {
			if _, status := get(t, h, url, c.request...); isHit(status) {
				t.Errorf("%s: %s", c.name, status)
			}
		}
		if o.called() != 3 {
			t.Errorf("%s: the handler was called %d times, want 3", c.name, o.called())
		}
	}
}

func variantsAreToldApart(t *testing.T, rdb redis.UniversalClient) {
	o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
		set(w.Header(), []string{"Cache-Control: max-age=60", "Vary: X-Color"})
		fmt.Fprintf(w, "%q", r.Header["X-Color"])
	}}
	h := must(t)(options(t, rdb).New()).Handler(o)
	for round := range 3 {
		for _, header := range [][]string{nil, {"X-Color: red"}, {"X-Color: blue"}, {"X-Color: "}} {
			body, status := get(t, h, "http://a.example/", header...)
			want := fmt.Sprintf("%q", func() []string { h := http.Header{}; set(h, header); return h["X-Color"] }())
			if body != want || isHit(status) != (round > 0) {
				t.Errorf("round %d, %q: %q, %s", round, header, body, status)
			}
		}
	}
	if o.called() != 4 {
		t.Errorf("the handler was called %d times, want 4", o.called())
	}
}
