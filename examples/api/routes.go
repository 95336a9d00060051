package main

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/mayflycache/mayfly/httpcache"
)

// newAPI returns the routes behind the cache. The cache is outside of the router, so a hit costs no routing. A background renewal outlives
// its request, and so must not use what the router keeps in the request's context.
func newAPI(a *articles, cache *httpcache.Cache, token string) http.Handler {
	r := chi.NewRouter()
	r.Use(middleware.Recoverer)
	r.Get("/articles", a.list)
	r.Get("/articles/{id}", a.show)
	r.With(bearer(token)).Put("/articles/{id}", a.replace(cache))
	return cache.Handler(r)
}

// fresh is the Cache-Control of answers that may be shared. This cache, and caches in front of it, may keep them for ten minutes, and serve
// them for one more while they fetch the next. Browsers ask each time, with the ETag.
const fresh = "max-age=0, s-maxage=600, stale-while-revalidate=60"

// list answers with the titles. It is made again when any article changes.
func (a *articles) list(w http.ResponseWriter, r *http.Request) {
	titles, version := a.titles()
	w.Header().Set("Cache-Tag", "articles")
	reply(w, version, titles)
}

// show answers with one article.
func (a *articles) show(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.Atoi(chi.URLParam(r, "id"))
	if err != nil {
		http.Error(w, "an article is a number", http.StatusBadRequest)
		return
	}
	one, version, ok := a.get(id)
	if !ok {
		http.Error(w, "no such article", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Tag", tag(id))
	reply(w, version, one)
}

// replace stores an article, and then purges what was made of the old one. A PUT can be repeated: a client that is told that the purge
// failed sends it again.
func (a *articles) replace(cache *httpcache.Cache) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.Atoi(chi.URLParam(r, "id"))
		var next article
		if err == nil {
			err = json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&next)
		}
		if err != nil || next.Title == "" {
			http.Error(w, "an article is a number, a title and a text", http.StatusBadRequest)
			return
		}
		a.put(id, next)
		if err := cache.Purge(r.Context(), httpcache.Target{Tag: "articles"}, httpcache.Target{Tag: tag(id)}); err != nil {
			http.Error(w, "stored, but others may still see the old article: send it again", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func tag(id int) string { return fmt.Sprint("article-", id) }

func reply(w http.ResponseWriter, version int, body any) {
	w.Header().Set("Cache-Control", fresh)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", fmt.Sprintf(`"%d"`, version))
	json.NewEncoder(w).Encode(body)
}

// bearer lets requests with the token pass. Answers to them are never stored for others.
func bearer(token string) func(http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
