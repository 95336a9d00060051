package sliding_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/sliding"
)

type login struct{ User string }

func Example() {
	db := mayfly.Must(embedded.Open(embedded.Options{})) // stands for a redis.NewClient
	ctx := context.Background()
	defer db.Close(ctx)

	sessions := mayfly.Must(sliding.New(mayfly.Namespace[string, login]{
		Name: "sessions", Redis: db.Client(), Prefix: "session:", TTL: 30 * time.Minute,
	}, sliding.Options{MaxAge: 12 * time.Hour}))

	fmt.Println(sessions.Create(ctx, "xyz", login{"ada"}))
	fmt.Println(sessions.Get(ctx, "xyz")) // and 30 more minutes
	fmt.Println(sessions.Delete(ctx, "xyz"))
	_, err := sessions.Get(ctx, "xyz")
	fmt.Println(errors.Is(err, mayfly.ErrNotFound))
	// Output:
	// <nil>
	// {ada} <nil>
	// <nil>
	// true
}

func ExampleLimiter() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	ctx := context.Background()
	defer db.Close(ctx)

	logins := mayfly.Must(sliding.NewLimiter(mayfly.Namespace[string, int64]{
		Name: "logins", Redis: db.Client(), Prefix: "limit:login:", TTL: time.Minute,
	}, sliding.LimiterOptions{Limit: 2}))

	for range 3 {
		d, err := logins.Allow(ctx, "ada", 1)
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output:
	// true 1 <nil>
	// true 0 <nil>
	// false 0 <nil>
}

// A limit for all processes of a site. Each process takes shares of it, so that few calls need a round trip.
func ExampleLimiter_lease() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	ctx := context.Background()
	defer db.Close(ctx)

	searches := mayfly.Must(sliding.NewLimiter(mayfly.Namespace[string, int64]{
		Name: "searches", Redis: db.Client(), Prefix: "limit:search:", TTL: time.Minute,
	}, sliding.LimiterOptions{Limit: 1_000_000, Lease: 50 * time.Millisecond}))
	defer searches.Close(ctx) // gives unused calls back

	for range 3 {
		d, err := searches.Allow(ctx, "all", 1)
		fmt.Println(d.Allowed, d.Remaining, err)
	}
	// Output:
	// true 999999 <nil>
	// true 999998 <nil>
	// true 999997 <nil>
}

// A limit a second and one a day, and both or none count.
func ExampleAllowAll() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	ctx := context.Background()
	defer db.Close(ctx)
	limiter := func(name string, window time.Duration, limit int) *sliding.Limiter[string] {
		return mayfly.Must(sliding.NewLimiter(mayfly.Namespace[string, int64]{
			Name: name, Redis: db.Client(), Prefix: "limit:" + name + ":", TTL: window,
		}, sliding.LimiterOptions{Limit: limit}))
	}
	burst, daily := limiter("burst", time.Minute, 2), limiter("daily", 24*time.Hour, 100)

	for range 3 {
		allowed, each, err := sliding.AllowAll(ctx, burst.Ask("{ada}", 1), daily.Ask("{ada}", 1))
		fmt.Println(allowed, each[0].Allowed, each[1].Remaining, err)
	}
	// Output:
	// true true 99 <nil>
	// true true 98 <nil>
	// false false 98 <nil>
}

// Sessions over HTTP: an id that nobody can guess, in a cookie that scripts and other sites do not get. Each request renews the session, a login
// gives it a new id, and a logout deletes it.
func Example_cookies() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	defer db.Close(context.Background())
	web := newWeb(db.Client())

	site := httptest.NewServer(web)
	defer site.Close()
	cookie := ""
	visit := func(path string) {
		r, _ := http.NewRequest("GET", site.URL+path, nil)
		r.Header.Set("Cookie", cookie)
		answer := mayfly.Must(http.DefaultClient.Do(r))
		defer answer.Body.Close()
		var text string
		fmt.Fscan(answer.Body, &text)
		if set := answer.Cookies(); len(set) > 0 {
			cookie = set[0].Name + "=" + set[0].Value
		}
		fmt.Println(path, text)
	}
	visit("/")
	visit("/login")
	visit("/")
	visit("/logout")
	visit("/")
	// Output:
	// / hello,guest
	// /login welcome
	// / hello,ada
	// /logout bye
	// / hello,guest
}

func newWeb(rdb *redis.Client) http.Handler {
	sessions := mayfly.Must(sliding.New(mayfly.Namespace[string, login]{
		Name: "sessions", Redis: rdb, Prefix: "session:", TTL: 30 * time.Minute,
	}, sliding.Options{MaxAge: 12 * time.Hour}))
	give := func(w http.ResponseWriter, id string, age int) {
		http.SetCookie(w, &http.Cookie{Name: "__Host-id", Value: id, Path: "/", MaxAge: age, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	}
	// session returns the session of a request, a new one if it has none.
	session := func(w http.ResponseWriter, r *http.Request) (id string, s login, err error) {
		if c, err := r.Cookie("__Host-id"); err == nil && c.Value != "" {
			s, err := sessions.Get(r.Context(), c.Value)
			if !errors.Is(err, mayfly.ErrNotFound) {
				return c.Value, s, err
			}
		}
		id = rand.Text()
		give(w, id, 0)
		return id, s, sessions.Create(r.Context(), id, s)
	}
	serve := func(f func(w http.ResponseWriter, r *http.Request, id string, s login) error) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, s, err := session(w, r)
			if err == nil {
				err = f(w, r, id, s)
			}
			if err != nil { // "down" is not "logged out"
				http.Error(w, "try again later", http.StatusServiceUnavailable)
			}
		})
	}
	mux := http.NewServeMux()
	mux.Handle("/", serve(func(w http.ResponseWriter, _ *http.Request, _ string, s login) error {
		name := "guest"
		if s.User != "" {
			name = s.User
		}
		_, err := fmt.Fprint(w, "hello,", name)
		return err
	}))
	mux.Handle("/login", serve(func(w http.ResponseWriter, r *http.Request, id string, s login) error {
		s.User = "ada" // whose password was right
		if err := sessions.Set(r.Context(), id, s); err != nil {
			return err
		}
		fresh := rand.Text() // others may know the previous id
		if err := sessions.Rotate(r.Context(), id, fresh); err != nil {
			return err
		}
		give(w, fresh, 0)
		_, err := fmt.Fprint(w, "welcome")
		return err
	}))
	mux.Handle("/logout", serve(func(w http.ResponseWriter, r *http.Request, id string, _ login) error {
		if err := sessions.Delete(r.Context(), id); err != nil {
			return err
		}
		give(w, "", -1)
		_, err := fmt.Fprint(w, "bye")
		return err
	}))
	return mux
}
