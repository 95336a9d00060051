package shop_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
)

func Example() {
	ctx := context.Background()
	db, err := embedded.Open(embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close(ctx)
	set := panel.Default
	set.Mayfly, set.Shoppers = true, 0 // nobody but us
	s, err := shop.Open(ctx, shop.Options{Redis: db.Client().Options(), Settings: set})
	if err != nil {
		panic(err)
	}
	defer s.Close(ctx)

	for range 3 {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/product/0", nil))
		fmt.Println(w.Code)
	}
	fmt.Println(s.Figures(ctx).Queries, "query")
	// Output:
	// 200
	// 200
	// 200
	// 1 query
}
