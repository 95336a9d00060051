// Shop sells the products of a PostgreSQL table, and reads each from the database once for all its processes.
//
//	DATABASE_URL=postgres://localhost/shop REDIS_URL=redis://localhost:6379 go run ./shop
//
//	curl localhost:8080/products/1
//	curl -X PUT -d '{"cents": 1999}' localhost:8080/products/1/price
//	curl -X POST -d '{"quantity": 2}' localhost:8080/products/1/orders
//
// Without REDIS_URL it keeps its copies in its own memory, in the embedded engine; other processes then do not learn of its changes.
//
// catalogue.go is the part to read: it commits a change, and then deletes the cached copy. The order matters, as the test
// shows with two writers and many readers: no reader is ever left with an old price.
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

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	url := os.Getenv("DATABASE_URL")
	if url == "" {
		return errors.New("DATABASE_URL is not set: it names a PostgreSQL, as in postgres://user:password@localhost:5432/shop")
	}
	db, err := pgxpool.New(ctx, url)
	if err != nil {
		return fmt.Errorf("DATABASE_URL: %w", err)
	}
	defer db.Close()
	rdb, stop, err := connect(ctx, os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer stop()
	if err := createTables(ctx, db); err != nil {
		return err
	}
	catalogue, err := newCatalogue(db, rdb, 0)
	if err != nil {
		return err
	}
	defer within(catalogue.cache.Close)

	l, err := net.Listen("tcp", "localhost:8080")
	if err != nil {
		return err
	}
	fmt.Println("shop: http://" + l.Addr().String())
	server := &http.Server{Handler: routes(catalogue), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err = <-failed:
		return err
	case <-ctx.Done():
		return within(server.Shutdown)
	}
}

// connect returns a client of the Redis at url, or of the embedded engine if url is empty, and a function that closes it.
func connect(ctx context.Context, url string) (rdb redis.UniversalClient, stop func(), err error) {
	if url == "" {
		db, err := embedded.Open(embedded.Options{MaxMemory: 64 << 20, Policy: "allkeys-lru"})
		if err != nil {
			return nil, nil, err
		}
		return db.Client(), func() { within(db.Close) }, nil
	}
	o, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	client := redis.NewClient(o)
	return client, func() { client.Close() }, nil
}

// within gives end ten seconds.
func within(end func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return end(ctx)
}
