package httpcache_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/httpcache"
)

func Example() {
	db := mayfly.Must(embedded.Open(embedded.Options{})) // stands for a redis.NewClient
	ctx := context.Background()
	defer db.Close(ctx)

	products := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("the handler is asked for", r.URL.Path)
		w.Header().Set("Cache-Control", "max-age=60, stale-while-revalidate=600")
		w.Header().Set("Cache-Tag", "products")
		io.WriteString(w, "a product")
	})

	cache := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{Name: "pages", Redis: db.Client(), Prefix: "http:", TTL: 24 * time.Hour}, httpcache.Options{}))
	defer cache.Close(ctx)
	site := cache.Handler(products)

	get := func(path string) {
		w := httptest.NewRecorder()
		site.ServeHTTP(w, httptest.NewRequest("GET", "https://shop.example"+path, nil))
		how, _, _ := strings.Cut(w.Header().Get("Cache-Status"), "; ttl")
		fmt.Println(w.Body, "-", how)
	}
	get("/products/7")
	get("/products/7")
	cache.Purge(ctx, httpcache.Target{Tag: "products"}) // after a change in the database
	get("/products/7")
	// Output:
	// the handler is asked for /products/7
	// a product - mayfly; fwd=uri-miss
	// a product - mayfly; hit
	// the handler is asked for /products/7
	// a product - mayfly; fwd=uri-miss
}

// Two reports are missing, and the handler makes one at a time. The second request waits for its turn, and gets a 503 if its client's
// deadline or LoadTimeout passes first. Without LoadLimit, the cache finds out by itself how many may run at once.
func ExampleOptions_loadLimit() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	ctx := context.Background()
	defer db.Close(ctx)

	cache := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{Name: "reports", Redis: db.Client(), Prefix: "reports:", TTL: time.Hour}, httpcache.Options{
		LoadLimit: 1,
	}))
	defer cache.Close(ctx)
	begun, goOn := make(chan struct{}), make(chan struct{})
	reports := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("id") == "7" {
			close(begun)
			<-goOn
		}
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, "a report")
	}))
	first := make(chan int)
	get := func(path string, wait time.Duration) (code int, retry string) {
		w := httptest.NewRecorder()
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		reports.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://shop.example"+path, nil))
		return w.Code, w.Header().Get("Retry-After")
	}
	code, _ := get("/report?id=6", time.Minute) // so the cache knows that answers of this path can be shared
	fmt.Println(code)
	go func() { code, _ := get("/report?id=7", time.Minute); first <- code }()
	<-begun
	code, retry := get("/report?id=8", 100*time.Millisecond)
	fmt.Println(code, "- try again after", retry, "s;", cache.Origin().Stats().Limit, "at a time")
	close(goOn)
	fmt.Println(<-first)
	// Output:
	// 200
	// 503 - try again after 1 s; 1 at a time
	// 200
}

// Routes whose handlers say nothing get a Cache-Control from the options.
func ExampleNew() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	ctx := context.Background()
	defer db.Close(ctx)

	assets := mayfly.Namespace[string, []byte]{Name: "assets", Redis: db.Client(), Prefix: "assets:", TTL: time.Hour}
	cache := mayfly.Must(httpcache.New(assets, httpcache.Options{
		Override: map[string]string{"GET /assets/": "public, max-age=600"},
	}))
	defer cache.Close(ctx)
	h := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "body { }") }))
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://shop.example/assets/site.css", nil))
		fmt.Println(w.Header().Get("Cache-Control"), "-", strings.Contains(w.Header().Get("Cache-Status"), "; hit"))
	}
	// Output:
	// public, max-age=600 - false
	// public, max-age=600 - true
}

// A handler says which parameters of the query it looks at, so that the stored answer for one URL serves equivalent ones.
func ExampleOptions_noVarySearch() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	ctx := context.Background()
	defer db.Close(ctx)

	cache := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{Name: "pages", Redis: db.Client(), Prefix: "http:", TTL: time.Hour}, httpcache.Options{
		NoVarySearch: true,
	}))
	defer cache.Close(ctx)
	site := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("No-Vary-Search", `params, except=("id")`)
		fmt.Fprint(w, "product ", r.URL.Query().Get("id"))
	}))
	for _, query := range []string{"?id=7&utm_source=mail", "?utm_source=search&id=7", "?id=8"} {
		w := httptest.NewRecorder()
		site.ServeHTTP(w, httptest.NewRequest("GET", "http://shop.example/product"+query, nil))
		fmt.Println(w.Body, strings.HasPrefix(w.Header().Get("Cache-Status"), "mayfly; hit"))
	}
	// Output:
	// product 7 false
	// product 7 true
	// product 8 false
}

// Reads of logged-in clients bypass the cache, because pages stored for anonymous clients are not for them. Everything else goes through it:
// requests that change something invalidate what they change.
func Example_loggedIn() {
	db := mayfly.Must(embedded.Open(embedded.Options{})) // stands for a redis.NewClient
	ctx := context.Background()
	defer db.Close(ctx)

	site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := "everybody"
		if c, err := r.Cookie("session"); err == nil {
			who = c.Value
			w.Header().Set("Cache-Control", "private")
		} else {
			w.Header().Set("Cache-Control", "max-age=60")
		}
		fmt.Fprint(w, "hello, ", who)
	})
	cache := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{Name: "pages", Redis: db.Client(), Prefix: "http:", TTL: 24 * time.Hour}, httpcache.Options{}))
	defer cache.Close(ctx)
	cached := cache.Handler(site)

	loggedIn := func(r *http.Request) bool {
		_, err := r.Cookie("session")
		return err == nil
	}
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loggedIn(r) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			site.ServeHTTP(w, r)
			return
		}
		cached.ServeHTTP(w, r)
	})

	get := func(cookie string) {
		r := httptest.NewRequest("GET", "https://shop.example/", nil)
		r.Header.Set("Cookie", cookie)
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		how, _, _ := strings.Cut(w.Header().Get("Cache-Status"), "; ttl")
		fmt.Println(w.Body, "-", how)
	}
	get("analytics=1")
	get("analytics=2")
	get("analytics=3; session=ada")
	// Output:
	// hello, everybody - mayfly; fwd=uri-miss
	// hello, everybody - mayfly; hit
	// hello, ada -
}
