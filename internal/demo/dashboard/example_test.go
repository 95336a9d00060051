package dashboard_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/demo/dashboard"
	"github.com/mayflycache/mayfly/internal/demo/shop"
)

func Example() {
	ctx := context.Background()
	db, err := embedded.Open(embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close(ctx)
	s, err := shop.Open(ctx, shop.Options{Redis: db.Client().Options()})
	if err != nil {
		panic(err)
	}
	defer s.Close(ctx)

	page := httptest.NewRecorder()
	dashboard.Handler(s, dashboard.NewRecorder(s), dashboard.Options{Redis: "an embedded Redis"}).ServeHTTP(page, httptest.NewRequest("GET", "http://localhost/", nil))
	fmt.Println(strings.Contains(page.Body.String(), "<title>mayfly demo</title>"))
	// Output: true
}
