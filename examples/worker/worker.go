package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/sliding"
)

// newLimits returns the limiter in which all workers count: each host may get this many requests in any window. A counter ends with its window, so
// finished hosts leave nothing behind.
func newLimits(rdb redis.UniversalClient, limit int, window time.Duration) (*sliding.Limiter[string], error) {
	return sliding.NewLimiter(mayfly.Namespace[string, int64]{
		Name: "hosts", Redis: rdb, Prefix: "worker:host:", TTL: window,
	}, sliding.LimiterOptions{Limit: limit, Sliding: true})
}

type worker struct {
	limits *sliding.Limiter[string]
	fetch  func(ctx context.Context, url string) error
	tell   func(error) // receives errors that do not end the work
}

// run fetches URLs, this many in parallel, until there are no more or ctx ends; then it returns ctx's error. It reports a URL that cannot be
// fetched, and continues with the next. A URL that waits for its host's turn counts as one of those in parallel.
func (w worker) run(ctx context.Context, urls <-chan string, parallel int) error {
	if parallel < 1 {
		return fmt.Errorf("at least one URL must be fetched at once, got %d", parallel)
	}
	var all sync.WaitGroup
	for range parallel {
		all.Go(func() {
			for {
				select {
				case u, more := <-urls:
					if !more {
						return
					}
					if err := w.take(ctx, u); err != nil && ctx.Err() == nil {
						w.tell(fmt.Errorf("%s: %w", u, err))
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

func (w worker) take(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	if u.Host == "" {
		return errors.New("not an absolute URL")
	}
	if err := w.turn(ctx, u.Host); err != nil {
		return err
	}
	return w.fetch(ctx, address)
}

// turn returns when a host may be asked, or when ctx has ended.
func (w worker) turn(ctx context.Context, host string) error {
	const short, long = 100 * time.Millisecond, 10 * time.Second
	for patience := short; ; {
		d, err := w.limits.Allow(ctx, host, 1)
		if err == nil && d.Allowed {
			return nil
		}
		wait := d.RetryAfter
		if err == nil {
			patience = short
		} else { // also for mayfly.ErrUnknownOutcome: if that call was counted, the worker makes one request less than the limit
			w.tell(err)
			wait, patience = patience, min(2*patience, long)
		}
		wait += rand.N(wait/10 + time.Millisecond) // so that those waiting for the same window do not all ask at once
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
