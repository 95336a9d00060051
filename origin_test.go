package mayfly_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/redistest"
)

func TestOriginOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]mayfly.OriginOptions{
		"":  {},
		" ": {Limit: -7, Timeout: time.Second},
		"mayfly: OriginOptions.Limit must be at most 1000000, got 2000000": {Limit: 2_000_000},
		"mayfly: OriginOptions.Timeout must be at least 1ms, got -1s":      {Timeout: -time.Second},
	} {
		origin, err := mayfly.NewOrigin(o)
		switch {
		case strings.TrimSpace(want) == "":
			if err != nil || origin.Stats().InFlight != 0 || origin.Stats().Limit == 0 {
				t.Errorf("%+v: %v", o, err)
			}
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// Two caches of one database share what may be asked of it.
func ExampleNewOrigin() {
	srv := mayfly.Must(redistest.Run()) // stands for a Redis
	defer srv.Close()
	db := mayfly.Must(mayfly.NewOrigin(mayfly.OriginOptions{Limit: 8}))
	load := func(_ context.Context, id int) (string, error) { return fmt.Sprint("user ", id), nil }
	users := mayfly.Must(cacheaside.New(mayfly.Namespace[int, string]{Name: "users", Redis: srv.Client(), Prefix: "user:", TTL: time.Hour},
		load, cacheaside.Options{Origin: db}))
	defer users.Close(context.Background())
	users.Get(context.Background(), 7)
	s := db.Stats()
	fmt.Println(s.Entered, "load,", s.InFlight, "in flight of", s.Limit)
	// Output: 1 load, 0 in flight of 8
}
