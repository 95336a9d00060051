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

// newLimits returns what all workers count in: each host has so many calls in any window. A counter ends with its window, so
// hosts that are done leave nothing behind.
func newLimits(rdb redis.UniversalClient, limit int, window time.Duration) (*sliding.Limiter[string], error) {
	return sliding.NewLimiter(mayfly.Namespace[string, int64]{
		Name: "hosts", Redis: rdb, Prefix: "worker:host:", TTL: window,
	}, sliding.LimiterOptions{Limit: limit, Sliding: true})
}

type worker struct {
	limits *sliding.Limiter[string]
	fetch  func(ctx context.Context, url string) error
	tell   func(error) // what goes wrong, and does not end the work
}

// run fetches URLs, so many at once, until there are no more or ctx ends; then it returns ctx's error. A URL that cannot be fetched
// is told, and the next one is taken. Who waits for a host's turn is one of those many.
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

// turn returns when a host may be asked, or ctx has ended.
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
		} else { // also mayfly.ErrUnknownOutcome: if that call was counted, one less than the limit is made
			w.tell(err)
			wait, patience = patience, min(2*patience, long)
		}
		wait += rand.N(wait/10 + time.Millisecond) // so that those who wait for the same do not ask at the same time
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
