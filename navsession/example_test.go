package navsession_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/navsession"
	"github.com/mayflycache/mayfly/redistest"
)

func Example() {
	srv, err := redistest.Run() // stands for the program's Redis
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := srv.Client()
	defer rdb.Close()
	ctx := context.Background()

	visits, err := navsession.New(mayfly.Namespace[int64, navsession.Page]{
		Name: "visits", Redis: rdb, Prefix: "pageviews.user:", TTL: 60 * time.Second,
	}, navsession.Options{Pages: 20})
	if err != nil {
		panic(err)
	}
	show := func() {
		pages, err := visits.Recent(ctx, 1001, 5)
		fmt.Println(len(pages), err)
		for _, p := range pages {
			fmt.Println("-", p.URL)
		}
	}

	visits.Record(ctx, 1001, navsession.Page{URL: "/shoes", Time: time.Now()})
	srv.Advance(59 * time.Second)
	visits.Record(ctx, 1001, navsession.Page{URL: "/shoes/7", Time: time.Now()})
	srv.Advance(59 * time.Second)
	show()
	srv.Advance(2 * time.Second)
	show()
	// Output:
	// 2 <nil>
	// - /shoes/7
	// - /shoes
	// 0 <nil>
}

func ExampleMiddleware() {
	srv, err := redistest.Run()
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := srv.Client()
	defer rdb.Close()
	ctx := context.Background()

	visits := mayfly.Must(navsession.New(mayfly.Namespace[string, navsession.Page]{
		Name: "visits", Redis: rdb, Prefix: "pageviews.user:", TTL: 60 * time.Second,
	}, navsession.Options{Pages: 20}))
	recorder := mayfly.Must(navsession.NewMiddleware(visits, func(r *http.Request) (string, bool) {
		name, _, ok := r.BasicAuth()
		return name, ok
	}, navsession.MiddlewareOptions{}))
	shop := recorder.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "shoes") }))

	for _, path := range []string{"/shoes/7?ref=mail", "/style.css"} {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.SetBasicAuth("ada", "")
		r.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0")
		shop.ServeHTTP(httptest.NewRecorder(), r)
	}
	fmt.Println(recorder.Close(ctx)) // at shutdown, after the http.Server's

	pages, _ := visits.Recent(ctx, "ada", 5)
	for _, p := range pages {
		fmt.Println(p.URL)
	}
	// Output:
	// <nil>
	// /shoes/7
}

func ExampleRelated() {
	srv, err := redistest.Run()
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := srv.Client()
	defer rdb.Close()
	ctx := context.Background()

	visits := mayfly.Must(navsession.New(mayfly.Namespace[string, int]{
		Name: "visits", Redis: rdb, Prefix: "products.user:", TTL: 60 * time.Second,
	}, navsession.Options{Pages: 20}))
	related := mayfly.Must(navsession.NewRelated(mayfly.Namespace[int, int]{
		Name: "related", Redis: rdb, Prefix: "related:", TTL: 7 * 24 * time.Hour,
	}, navsession.RelatedOptions{}))

	look := func(user string, product int) {
		earlier, _ := visits.Recent(ctx, user, 8)
		visits.Record(ctx, user, product)
		related.Record(ctx, product, earlier...)
	}
	for _, user := range []string{"ada", "bob", "cid"} {
		look(user, 7)
		look(user, 12)
	}
	look("cid", 30) // what one visit saw is not shown

	fmt.Println(related.Top(ctx, 7, 3))
	// Output: [12] <nil>
}
