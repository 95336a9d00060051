package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/redistest"
)

const token = "secret"

// patient is for tests that are not about time, on machines that are busy with others.
var patient = 10 * time.Second

// process returns the API as of a process of its own over a database that is there already.
func process(t *testing.T, a *articles, rdb redis.UniversalClient, redisTimeout time.Duration) http.Handler {
	t.Helper()
	cache, err := newCache(rdb, redisTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close(context.Background()) })
	return newAPI(a, cache, token)
}

// ask sends a request, whose header is given as "Name: value", and returns the answer.
func ask(api http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://api.example"+path, strings.NewReader(body))
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w
}

// expect fails unless the answer is as it should be; text is a part of its body.
func expect(t *testing.T, w *httptest.ResponseRecorder, status int, text string) {
	t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), text) {
		t.Errorf("answered %d %.200s, want %d and %q", w.Code, w.Body, status, text)
	}
}

// asksAre fails unless the database was asked so often.
func (a *articles) asksAre(t *testing.T, want int) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked != want {
		t.Errorf("the database was asked %d times, want %d", a.asked, want)
	}
}

func each(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	for _, b := range backends.Only("redistest", "redis 8", "given") {
		t.Run(b.Name, func(t *testing.T) { test(t, backends.LongLeases(t, b.Open(t))) })
	}
}

func TestOneProcessAsksForAll(t *testing.T) {
	each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a := newArticles()
		one, other := process(t, a, rdb, patient), process(t, a, rdb, patient)
		var all sync.WaitGroup
		for range 20 {
			for _, api := range []http.Handler{one, other} {
				all.Go(func() { expect(t, ask(api, "GET", "/articles/1?utm_source=mail", ""), http.StatusOK, "Mayflies") })
			}
		}
		all.Wait()
		a.asksAre(t, 1)

		w := ask(other, "GET", "/articles/1", "")
		if status := w.Header().Get("Cache-Status"); !strings.Contains(status, "mayfly; hit") {
			t.Errorf("Cache-Status is %q, want a hit", status)
		}
		expect(t, ask(one, "GET", "/articles/1", "", "If-None-Match: "+w.Header().Get("ETag")), http.StatusNotModified, "")
		a.asksAre(t, 1)
	})
}

func TestAChangeIsSeenByAllProcesses(t *testing.T) {
	each(t, func(t *testing.T, rdb redis.UniversalClient) {
		a := newArticles()
		one, other := process(t, a, rdb, patient), process(t, a, rdb, patient)
		look := func(first, list, second string) {
			t.Helper()
			for _, api := range []http.Handler{one, other} {
				expect(t, ask(api, "GET", "/articles/1", ""), http.StatusOK, first)
				expect(t, ask(api, "GET", "/articles", ""), http.StatusOK, list)
				expect(t, ask(api, "GET", "/articles/2", ""), http.StatusOK, second)
			}
		}
		look("for a day", "Mayflies", "Tortoises")
		a.asksAre(t, 3)
		expect(t, ask(one, "PUT", "/articles/1", `{"title": "Ephemeroptera", "text": "An hour"}`, "Authorization: Bearer "+token), http.StatusNoContent, "")
		look("An hour", "Ephemeroptera", "Tortoises")
		a.asksAre(t, 5) // not for the second, which did not change
	})
}

func TestWhoMayChangeWhat(t *testing.T) {
	a := newArticles()
	api := process(t, a, redistest.Start(t).Client(), patient)
	const auth, body = "Authorization: Bearer " + token, `{"title": "T", "text": "t"}`
	expect(t, ask(api, "PUT", "/articles/1", body), http.StatusUnauthorized, "who are you")
	expect(t, ask(api, "PUT", "/articles/1", body, "Authorization: Bearer wrong"), http.StatusUnauthorized, "who are you")
	expect(t, ask(api, "PUT", "/articles/one", body, auth), http.StatusBadRequest, "a number")
	expect(t, ask(api, "PUT", "/articles/1", `{}`, auth), http.StatusBadRequest, "a title")
	expect(t, ask(api, "GET", "/articles/one", ""), http.StatusBadRequest, "a number")
	expect(t, ask(api, "GET", "/articles/7", ""), http.StatusNotFound, "no such article")
	expect(t, ask(api, "GET", "/articles/1", ""), http.StatusOK, "Mayflies")
}

func TestRedisIsNoCondition(t *testing.T) {
	srv := redistest.Start(t)
	a := newArticles()
	api := process(t, a, srv.Client(), 0)
	expect(t, ask(api, "GET", "/articles/1", ""), http.StatusOK, "Mayflies")
	srv.Hang()
	defer srv.Thaw()
	expect(t, ask(api, "GET", "/articles/1", ""), http.StatusOK, "Mayflies")
	expect(t, ask(api, "GET", "/articles/2", ""), http.StatusOK, "Tortoises")
	expect(t, ask(api, "PUT", "/articles/1", `{"title": "T"}`, "Authorization: Bearer "+token), http.StatusServiceUnavailable, "send it again")
}
