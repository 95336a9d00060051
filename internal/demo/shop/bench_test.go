package shop_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
)

// discard is a response that nobody reads.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) WriteHeader(int)             {}
func (d discard) Write(b []byte) (int, error) { return len(b), nil }

// A product page by its handler, whose product is a copy in the process or in Redis, and kept whole.
func BenchmarkPage(b *testing.B) {
	for _, test := range []struct {
		name         string
		pages, local bool
	}{{"handler/local", false, true}, {"decorated/local", true, true}, {"handler/redis", false, false}, {"decorated/redis", true, false}} {
		b.Run(test.name, func(b *testing.B) {
			ctx := context.Background()
			db, err := embedded.Open(embedded.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer db.Close(ctx)
			set := panel.Default
			set.Mayfly, set.Pages, set.Local = true, test.pages, test.local
			set.Shoppers, set.Processes, set.Query, set.TTL = 0, 1, time.Millisecond, time.Hour
			s, err := shop.Open(ctx, shop.Options{Redis: db.Client().Options(), Settings: set})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close(ctx)
			r, _ := http.NewRequest("GET", "http://shop.example/product/1", nil)
			b.ReportAllocs()
			for b.Loop() {
				s.ServeHTTP(discard{make(http.Header)}, r)
			}
		})
	}
}
