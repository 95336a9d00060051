package httpcache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/httpcache"
)

// Pages over values over a database. After a change the values are deleted first, and the pages that show them after that: a page
// rendered in between shows the new value.
func Example_pagesOverValues() {
	ctx := context.Background()
	db := mayfly.Must(embedded.Open(embedded.Options{})) // stands for a redis.NewClient
	defer db.Close(ctx)
	var table sync.Map // stands for PostgreSQL
	table.Store("7", "Lamp, 9.00")

	products := mayfly.Must(cacheaside.New(
		mayfly.Namespace[string, string]{Name: "products", Redis: db.Client(), Prefix: "product:", TTL: time.Hour},
		func(_ context.Context, id string) (string, error) {
			row, ok := table.Load(id)
			if !ok {
				return "", mayfly.ErrNotFound
			}
			return row.(string), nil
		}, cacheaside.Options{}))
	defer products.Close(ctx)
	pages := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{Name: "pages", Redis: db.Client(), Prefix: "page:", TTL: time.Hour}, httpcache.Options{}))
	defer pages.Close(ctx)
	site := pages.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		product, err := products.Get(r.Context(), id) // with the request's context, and so within its budget
		if err != nil {
			http.Error(w, "no such product", http.StatusNotFound)
			return
		}
		w.Header().Set("Cache-Control", "max-age=600")
		w.Header().Set("Surrogate-Key", "product-"+id) // every value that the page shows is a tag
		fmt.Fprint(w, product)
	}))

	change := func(id, row string) error {
		table.Store(id, row)                                             // 1. commit
		value := products.Delete(ctx, id)                                // 2. the value
		made := pages.Purge(ctx, httpcache.Target{Tag: "product-" + id}) // 3. what was made of it, even if 2 failed
		return errors.Join(value, made)
	}
	get := func() {
		w := httptest.NewRecorder()
		site.ServeHTTP(w, httptest.NewRequest("GET", "https://shop.example/product?id=7", nil))
		fmt.Println(w.Body)
	}
	get()
	if err := change("7", "Lamp, 8.00"); err != nil {
		fmt.Println(err)
	}
	get()
	// Output:
	// Lamp, 9.00
	// Lamp, 8.00
}
