package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

func TestMain(m *testing.M) { os.Exit(processes.Main(m)) }

func init() { processes.Roles["shop"] = busyShop }

// business says what a process is asked, and what it may ask.
type business struct {
	Database     string        // its URL
	Connections  int           // to it, at most
	Query        time.Duration // that each query takes
	Keys         int
	Gets         int           // a second
	Limit        int           // LoadLimit
	RedisTimeout time.Duration // RedisTimeout
}

const (
	callerWaits = 500 * time.Millisecond
	loadTimeout = time.Second
	reports     = 20 * time.Millisecond
)

// busyShop is a process with callers who ask for keys at random, until its standard input is closed. The first line there is its business
// as JSON. It keeps writing how many Gets have ended since the line before, and how many of them with a value.
func busyShop() int {
	in := bufio.NewReader(os.Stdin)
	var b business
	line, err := in.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &b)
	}
	if err == nil {
		err = serve(b, in)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		return 1
	}
	return 0
}

func serve(b business, in *bufio.Reader) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	config, err := pgxpool.ParseConfig(b.Database)
	if err != nil {
		return err
	}
	config.MaxConns = int32(b.Connections)
	db, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer db.Close()
	rdb := processes.Dial()
	defer rdb.Close()
	load := func(ctx context.Context, key int) (v int, err error) {
		// A sequence counts failed queries too: nextval is not rolled back.
		err = db.QueryRow(ctx, "SELECT $1::int FROM nextval('queries'), pg_sleep($2)", key, b.Query.Seconds()).Scan(&v)
		return v, err
	}
	cache, err := cacheaside.New(mayfly.Namespace[int, int]{Name: "rows", Redis: rdb, Prefix: "shop:row:", TTL: time.Hour}, load, cacheaside.Options{
		LoadTimeout: loadTimeout, LoadLimit: b.Limit,
		RedisTimeout: b.RedisTimeout,
	})
	if err != nil {
		return err
	}
	defer within(cache.Close)

	go func() { in.ReadByte(); stop() }()
	var ended, answered atomic.Int64
	var gets sync.WaitGroup
	defer gets.Wait()
	const atOnce = 4
	tick, report := time.NewTicker(atOnce*time.Second/time.Duration(b.Gets)), time.NewTicker(reports)
	defer tick.Stop()
	defer report.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-report.C:
			fmt.Println(ended.Swap(0), answered.Swap(0))
		case <-tick.C: // a busy machine loses ticks: it asks less, and not all at once later
			for range atOnce {
				key := rand.IntN(b.Keys)
				gets.Go(func() {
					ctx, cancel := context.WithTimeout(ctx, callerWaits)
					defer cancel()
					if v, err := cache.Get(ctx, key); err == nil && v == key {
						answered.Add(1)
					}
					ended.Add(1)
				})
			}
		}
	}
}
