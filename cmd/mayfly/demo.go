package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/jitter"
)

// A shop is what demo plays: shoppers look at one product, again and again, which a slow database has.
type shop struct {
	shoppers int
	pause    time.Duration // of a shopper between two looks
	query    time.Duration // that the database takes
	ttl      time.Duration
	runs     time.Duration // each way of asking
}

// connections of the database: the queries beyond wait.
const connections = 8

type product struct {
	ID    int
	Name  string
	Stock int
}

// A database answers after a while, few at a time.
type database struct {
	takes    time.Duration
	free     chan struct{}
	waiting  atomic.Int64
	queries  atomic.Int64
	mostAway atomic.Int64
}

func (d *database) product(ctx context.Context, id int) (product, error) {
	d.queries.Add(1)
	for n := d.waiting.Add(1); ; {
		if most := d.mostAway.Load(); n <= most || d.mostAway.CompareAndSwap(most, n) {
			break
		}
	}
	defer d.waiting.Add(-1)
	select {
	case d.free <- struct{}{}:
		defer func() { <-d.free }()
	case <-ctx.Done():
		return product{}, ctx.Err()
	}
	select {
	case <-time.After(d.takes):
		return product{id, "lamp", 12}, nil
	case <-ctx.Done():
		return product{}, ctx.Err()
	}
}

// look is one way to get a product.
type look func(ctx context.Context, id int) (product, error)

// ways are what demo compares, the one to end with last.
var ways = []struct {
	name  string
	build func(s shop, rdb *redis.Client, d *database) (look, func(context.Context) error, error)
}{
	{"GET, else query and SET EX", func(s shop, rdb *redis.Client, d *database) (look, func(context.Context) error, error) {
		return func(ctx context.Context, id int) (p product, err error) {
			key := fmt.Sprint("plain:", id)
			if kept, err := rdb.Get(ctx, key).Bytes(); err == nil {
				return p, json.Unmarshal(kept, &p)
			}
			if p, err = d.product(ctx, id); err != nil {
				return p, err
			}
			kept, err := json.Marshal(p)
			return p, cmp.Or(err, rdb.Set(ctx, key, kept, s.ttl).Err())
		}, nil, nil
	}},
	{"mayfly's cacheaside", func(s shop, rdb *redis.Client, d *database) (look, func(context.Context) error, error) {
		products := mayfly.Namespace[int, product]{Name: "products", Redis: rdb, Prefix: "cache:product:", TTL: s.ttl, Jitter: jitter.Default}
		cache, err := cacheaside.New(products, d.product, cacheaside.Options{})
		if err != nil {
			return nil, nil, err
		}
		return cache.Get, cache.Close, nil
	}},
}

// demo is mayfly demo.
func demo(ctx context.Context, args []string, out io.Writer) error {
	var s shop
	flags := flag.NewFlagSet("mayfly demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&s.shoppers, "shoppers", 200, "`how many` look at the product at once, 1 to 10000")
	flags.DurationVar(&s.pause, "pause", 10*time.Millisecond, "of a shopper between two looks")
	flags.DurationVar(&s.query, "query", 50*time.Millisecond, "how long the database takes to answer")
	flags.DurationVar(&s.ttl, "ttl", time.Second, "how long the product is cached")
	flags.DurationVar(&s.runs, "for", 4*time.Second, "how long each way of asking is tried")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(out)
		fmt.Fprintln(out, "usage: mayfly demo [flags]")
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("demo: %v (%w)", err, errUsage)
	case flags.NArg() > 0:
		return fmt.Errorf("demo: unexpected argument %q (%w)", flags.Arg(0), errUsage)
	case s.shoppers < 1 || s.shoppers > 10_000:
		return fmt.Errorf("demo: --shoppers must be 1 to 10000, got %d (%w)", s.shoppers, errUsage)
	case min(s.pause, s.query, s.ttl, s.runs) < time.Millisecond:
		return fmt.Errorf("demo: --pause, --query, --ttl and --for must be 1ms or more (%w)", errUsage)
	}
	db, err := embedded.Open(embedded.Options{})
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	fmt.Fprintf(out, "%d shoppers look at one product, kept in an embedded Redis for %v; the database takes %v and %d queries at once\n\n",
		s.shoppers, s.ttl, s.query, connections)
	fmt.Fprintf(out, "%-28s %8s %8s %14s %10s %10s\n", "", "looks", "queries", "most at once", "p99", "longest")
	for _, way := range ways {
		d := &database{takes: s.query, free: make(chan struct{}, connections)}
		get, stop, err := way.build(s, db.Client(), d)
		if err != nil {
			return err
		}
		took, err := s.open(ctx, get)
		if stop != nil {
			err = cmp.Or(err, stop(context.WithoutCancel(ctx)))
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%-28s %8d %8d %14d %10v %10v\n", way.name, len(took), d.queries.Load(), d.mostAway.Load(),
			took[len(took)*99/100].Round(100*time.Microsecond), took[len(took)-1].Round(100*time.Microsecond))
	}
	fmt.Fprintln(out, "\nPlain code asks the database once for every shopper who finds the product gone. mayfly asks one at a time, and before it is gone.")
	return ctx.Err()
}

// open lets the shoppers in for a while, and returns how long each look took, in order.
func (s shop) open(ctx context.Context, get look) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := make([][]time.Duration, s.shoppers)
	end := time.Now().Add(s.runs)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				begun := time.Now()
				if _, err := get(ctx, 1); err != nil {
					cancel(err)
					return
				}
				all[i] = append(all[i], time.Since(begun))
				select {
				case <-time.After(s.pause/2 + rand.N(s.pause)):
				case <-ctx.Done():
				}
			}
		})
	}
	wg.Wait()
	return slices.Sorted(slices.Values(slices.Concat(all...))), context.Cause(ctx)
}
