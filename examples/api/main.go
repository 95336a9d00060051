// Api serves articles as JSON, with chi, behind a cache that all its processes share.
//
//	REDIS_URL=redis://localhost:6379 API_TOKEN=secret go run ./api
//
//	curl -i localhost:8080/articles/1
//	curl -i localhost:8080/articles/1        # Cache-Status says: hit
//	curl -i -X PUT -H 'Authorization: Bearer secret' -d '{"title": "Mayflies", "text": "..."}' localhost:8080/articles/1
//
// A route's Cache-Control says how long its answer is good, and its Cache-Tag says what the answer is made of. A handler that changes an article
// purges the article's tags, and everything made of it is made again. The API does not depend on Redis: without it the routes still answer.
// Only changes are refused, because the other processes could not be told.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("REDIS_URL"), os.Getenv("API_TOKEN")); err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, redisURL, token string) error {
	if redisURL == "" || token == "" {
		return errors.New("REDIS_URL and API_TOKEN must be set, as in REDIS_URL=redis://localhost:6379 API_TOKEN=secret")
	}
	o, err := redis.ParseURL(redisURL)
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	rdb := redis.NewClient(o)
	defer rdb.Close()
	cache, err := newCache(rdb, 0)
	if err != nil {
		return err
	}

	l, err := net.Listen("tcp", "localhost:8080")
	if err != nil {
		return err
	}
	fmt.Println("api: http://" + l.Addr().String())
	server := &http.Server{Handler: newAPI(newArticles(), cache, token), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(ending), cache.Close(ending))
}

// newCache returns a cache of the API's answers. A request waits for Redis no longer than redisTimeout; zero is 150 ms.
func newCache(rdb redis.UniversalClient, redisTimeout time.Duration) (*httpcache.Cache, error) {
	return httpcache.New(mayfly.Namespace[string, []byte]{Name: "api", Redis: rdb, Prefix: "api:http:", TTL: 24 * time.Hour}, httpcache.Options{
		AnyHost: true, DropQuery: []string{"utm_*"}, // one API, whatever it is called
		RenewBackground: true, // the router is inside
		RedisTimeout:    redisTimeout,
	})
}
