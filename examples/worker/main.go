// Worker fetches the URLs that it reads, one per line, and sends no host more requests than agreed, however many workers there are.
//
//	REDIS_URL=redis://localhost:6379 go run ./worker -limit 5 -window 1s < urls
//
// Start as many as you like, on as many machines: they count in the same Redis. While Redis cannot be reached, nobody knows what the
// others do, so nothing is fetched.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	limit := flag.Int("limit", 5, "how often a host is asked in each window")
	window := flag.Duration("window", time.Second, "how long a window is")
	parallel := flag.Int("parallel", 8, "how many URLs are fetched or waited for at once")
	flag.Parse()
	if err := run(ctx, *limit, *window, *parallel); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, limit int, window time.Duration, parallel int) error {
	o, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return fmt.Errorf("REDIS_URL must name a Redis, as in redis://localhost:6379: %w", err)
	}
	rdb := redis.NewClient(o)
	defer rdb.Close()
	limits, err := newLimits(rdb, limit, window)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 30 * time.Second}
	w := worker{
		limits: limits,
		fetch:  func(ctx context.Context, url string) error { return fetch(ctx, client, url) },
		tell:   func(err error) { fmt.Fprintln(os.Stderr, "worker:", err) },
	}
	return w.run(ctx, lines(ctx, os.Stdin), parallel)
}

// lines sends the lines of r until there are no more or ctx ends.
func lines(ctx context.Context, r io.Reader) <-chan string {
	all := make(chan string)
	go func() {
		defer close(all)
		s := bufio.NewScanner(r)
		for s.Scan() {
			select {
			case all <- s.Text():
			case <-ctx.Done():
				return
			}
		}
		if err := s.Err(); err != nil {
			fmt.Fprintln(os.Stderr, "worker: the rest is not read:", err)
		}
	}()
	return all
}

// fetch prints the answer of a URL.
func fetch(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	size, err := io.Copy(io.Discard, answer.Body)
	fmt.Println(answer.StatusCode, size, url)
	return err
}
