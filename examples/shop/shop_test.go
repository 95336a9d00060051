package main

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/redistest"
)

const lamp = 1 // of createTables

// patient is for tests that are not about time, on machines that are busy with others.
var patient = 10 * time.Second

// open returns a catalogue as of a process of its own, whose loads are seen by trace, which may be nil.
func open(t *testing.T, url string, rdb redis.UniversalClient, redisTimeout time.Duration, trace pgx.QueryTracer) *catalogue {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 10
	config.ConnConfig.Tracer = trace
	db, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := createTables(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	c, err := newCatalogue(db, rdb, redisTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { within(c.cache.Close) })
	return c
}

// afterRead is called by a load that has read its row, before anybody else knows of it.
type afterRead func()

func (afterRead) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(q.SQL, "SELECT id, name") {
		return context.WithValue(ctx, isLoad{}, true)
	}
	return ctx
}

func (f afterRead) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	if ctx.Value(isLoad{}) != nil {
		f()
	}
}

type isLoad struct{}

// each runs test on the double and on a real Redis.
func each(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	for _, b := range backends.Only("redistest", "redis 8", "given") {
		t.Run(b.Name, func(t *testing.T) { test(t, backends.LongLeases(t, b.Open(t))) })
	}
}

func TestALoadThatReadTheOldRowIsNotStored(t *testing.T) {
	url := startPostgres(t, 60)
	each(t, func(t *testing.T, rdb redis.UniversalClient) {
		var held atomic.Bool
		reached, release := make(chan struct{}), make(chan struct{})
		reader := open(t, url, rdb, patient, afterRead(func() {
			if held.CompareAndSwap(false, true) {
				close(reached)
				<-release
			}
		}))
		writer := open(t, url, rdb, patient, nil)

		done := make(chan error)
		go func() {
			_, err := reader.product(context.Background(), lamp)
			done <- err
		}()
		<-reached
		err := writer.reprice(t.Context(), lamp, 1+rand.Int64N(1000))
		close(release)
		if loaded := <-done; err != nil || loaded != nil {
			t.Fatal(err, loaded)
		}
		agree(t, reader, writer)
	})
}

// The order that change avoids, step by step: the reason for the other.
func TestADeleteBeforeTheCommitLeavesTheOldRow(t *testing.T) {
	c := open(t, startPostgres(t, 60), backends.LongLeases(t, redistest.Start(t).Client()), patient, nil)
	ctx := t.Context()
	if err := c.cache.Delete(ctx, lamp); err != nil {
		t.Fatal(err)
	}
	before, err := c.product(ctx, lamp) // a reader comes between
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.db.Exec(ctx, "UPDATE products SET cents = cents + 1 WHERE id = $1", lamp); err != nil {
		t.Fatal(err)
	}
	if after, err := c.product(ctx, lamp); after != before || err != nil {
		t.Errorf("the cache has %v, %v: it cannot know of a change that nobody told it", after, err)
	}
	if row, err := c.query(ctx, lamp); row == before || err != nil {
		t.Errorf("the row is %v, %v", row, err)
	}
}

func TestTwoWritersAndManyReadersLeaveNoStaleEntry(t *testing.T) {
	const rounds, orders, readers = 30, 4, 8
	url := startPostgres(t, 60)
	each(t, func(t *testing.T, rdb redis.UniversalClient) {
		dawdle := afterRead(func() { <-time.After(rand.N(2 * time.Millisecond)) }) // so that loads and changes cross
		shops := []*catalogue{open(t, url, rdb, patient, dawdle), open(t, url, rdb, patient, dawdle)}
		if _, err := shops[0].db.Exec(t.Context(), "UPDATE products SET stock = 1000000 WHERE id = $1", lamp); err != nil {
			t.Fatal(err)
		}
		if err := shops[0].cache.Delete(t.Context(), lamp); err != nil {
			t.Fatal(err)
		}
		for range rounds {
			var all sync.WaitGroup
			for _, shop := range shops {
				var left atomic.Int64 // after the latest order that this process has finished
				left.Store(1_000_000)
				over := make(chan struct{})
				all.Go(func() {
					defer close(over)
					for range orders {
						n, err := shop.order(context.Background(), lamp, 1)
						if err != nil {
							t.Errorf("order: %v", err)
							return
						}
						left.Store(int64(n))
					}
				})
				for range readers {
					all.Go(func() {
						for {
							most := left.Load()
							p, err := shop.product(context.Background(), lamp)
							if err != nil || int64(p.Stock) > most {
								t.Errorf("%d in stock, %v, where this process has sold down to %d", p.Stock, err, most)
								return
							}
							select {
							case <-over:
								return
							default:
							}
						}
					})
				}
			}
			all.Wait()
			if agree(t, shops...); t.Failed() {
				return
			}
		}
	})
}

// agree checks that what shops show is the row.
func agree(t *testing.T, shops ...*catalogue) {
	t.Helper()
	row, err := shops[0].query(t.Context(), lamp)
	if err != nil {
		t.Fatal(err)
	}
	for i, shop := range shops {
		if p, err := shop.product(t.Context(), lamp); p != row || err != nil {
			t.Errorf("process %d shows %v, %v; the row is %v", i, p, err, row)
		}
	}
}

func TestRoutes(t *testing.T) {
	srv := redistest.Start(t)
	site := routes(open(t, startPostgres(t, 60), srv.Client(), 0, nil))
	ask := func(method, path, body string, status int, want string) {
		t.Helper()
		w := httptest.NewRecorder()
		site.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		if got := strings.TrimSpace(w.Body.String()); w.Code != status || got != want {
			t.Errorf("%s %s %s: %d %.200s, want %d %s", method, path, body, w.Code, got, status, want)
		}
	}
	ask("GET", "/products/1", "", http.StatusOK, `{"id":1,"name":"Lamp","cents":2900,"stock":12}`)
	ask("PUT", "/products/1/price", `{"cents": 1999}`, http.StatusNoContent, "")
	ask("POST", "/products/1/orders", `{"quantity": 2}`, http.StatusOK, `{"left":10}`)
	ask("GET", "/products/1", "", http.StatusOK, `{"id":1,"name":"Lamp","cents":1999,"stock":10}`)
	ask("POST", "/products/1/orders", `{"quantity": 11}`, http.StatusConflict, "not enough in stock")
	ask("POST", "/products/1/orders", `{"quantity": -1}`, http.StatusBadRequest, "bad request")
	ask("PUT", "/products/1/price", `cheap`, http.StatusBadRequest, "bad request")
	ask("GET", "/products/none", "", http.StatusBadRequest, "bad request")
	ask("GET", "/products/77", "", http.StatusNotFound, "no such product")
	ask("PUT", "/products/77/price", `{"cents": 1}`, http.StatusNotFound, "no such product")

	srv.Hang() // Redis is no condition: the database answers, also of what Redis could not be told
	ask("POST", "/products/1/orders", `{"quantity": 3}`, http.StatusOK, `{"left":7}`)
	ask("GET", "/products/1", "", http.StatusOK, `{"id":1,"name":"Lamp","cents":1999,"stock":7}`)
	srv.Thaw()
	ask("GET", "/products/1", "", http.StatusOK, `{"id":1,"name":"Lamp","cents":1999,"stock":7}`)
}
