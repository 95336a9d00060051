package cacheaside_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/jitter"
	"github.com/mayflycache/mayfly/redistest"
)

func Example() {
	rdb, stop := startRedis()
	defer stop()
	ctx := context.Background()

	queryUser := func(_ context.Context, id int64) (string, error) {
		fmt.Println("asking the database for", id)
		return "Ada", nil
	}
	users := mayfly.Namespace[int64, string]{Name: "users", Redis: rdb, Prefix: "cache:user:", TTL: time.Hour, Jitter: jitter.Default}
	cache, err := cacheaside.New(users, queryUser, cacheaside.Options{})
	if err != nil {
		panic(err)
	}
	defer cache.Close(ctx)

	fmt.Println(cache.Get(ctx, 1001))
	fmt.Println(cache.Get(ctx, 1001))
	fmt.Println(cache.Delete(ctx, 1001)) // after the database commit
	fmt.Println(cache.Get(ctx, 1001))
	// Output:
	// asking the database for 1001
	// Ada <nil>
	// Ada <nil>
	// <nil>
	// asking the database for 1001
	// Ada <nil>
}

// NotFound recognizes the loader's error that means "no such row", which is remembered for MissTTL. Callers see mayfly.ErrNotFound.
func Example_notFound() {
	rdb, stop := startRedis()
	defer stop()
	ctx := context.Background()

	queryUser := func(_ context.Context, id int64) (string, error) {
		fmt.Println("asking the database for", id)
		return "", sql.ErrNoRows
	}
	cache, err := cacheaside.New(mayfly.Namespace[int64, string]{
		Name: "users", Redis: rdb, Prefix: "cache:user:", TTL: time.Hour,
	}, queryUser, cacheaside.Options{
		NotFound:     func(err error) bool { return errors.Is(err, sql.ErrNoRows) },
		MissTTL:      time.Minute,
		RedisTimeout: time.Second,
	})
	if err != nil {
		panic(err)
	}
	defer cache.Close(ctx)

	for range 2 {
		_, err := cache.Get(ctx, 7)
		fmt.Println(errors.Is(err, mayfly.ErrNotFound))
	}
	// Output:
	// asking the database for 7
	// true
	// true
}

// GetMany reads what is stored in one trip, and asks a batch loader once for the rest.
func ExampleNewBatch() {
	rdb, stop := startRedis()
	defer stop()
	ctx := context.Background()

	queryUsers := func(_ context.Context, ids []int64) (map[int64]string, error) {
		fmt.Println("asking the database for", len(ids))
		return map[int64]string{1: "Ada", 2: "Grace"}, nil // 3 does not exist
	}
	cache, err := cacheaside.NewBatch(mayfly.Namespace[int64, string]{
		Name: "users", Redis: rdb, Prefix: "cache:user:", TTL: time.Hour,
	}, queryUsers, cacheaside.Options{RedisTimeout: time.Second})
	if err != nil {
		panic(err)
	}
	defer cache.Close(ctx)

	fmt.Println(cache.GetMany(ctx, []int64{1, 2, 3}))
	fmt.Println(cache.GetMany(ctx, []int64{1, 2}))
	// Output:
	// asking the database for 3
	// map[1:Ada 2:Grace] <nil>
	// map[1:Ada 2:Grace] <nil>
}

// A cache counts what it does, for a page of figures or a test.
func ExampleCache_Stats() {
	rdb, stop := startRedis()
	defer stop()
	ctx := context.Background()

	users := mayfly.Namespace[int64, string]{Redis: rdb, Prefix: "user:", TTL: time.Hour}
	cache, err := cacheaside.New(users, func(context.Context, int64) (string, error) { return "Ada", nil }, cacheaside.Options{RedisTimeout: time.Second})
	if err != nil {
		panic(err)
	}
	defer cache.Close(ctx)

	for range 3 {
		cache.Get(ctx, 1001)
	}
	s := cache.Stats()
	fmt.Println(s.Redis, "hits,", s.Missed, "miss,", s.Loads, "load")
	// Output: 2 hits, 1 miss, 1 load
}

// With StaleIfError a value that has expired is served if the origin fails.
func ExampleOptions_staleIfError() {
	srv, err := redistest.Run() // a Redis whose clock can be moved
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	ctx := context.Background()

	var failure error
	rate := func(context.Context, string) (float64, error) {
		fmt.Println("asking the bank")
		return 1.09, failure
	}
	cache, err := cacheaside.New(mayfly.Namespace[string, float64]{
		Name: "rates", Redis: srv.Client(), Prefix: "cache:rate:", TTL: time.Minute,
	}, rate, cacheaside.Options{
		StaleIfError: time.Hour,
		RedisTimeout: time.Second, // how long a call waits for Redis; the default is 150 ms
	})
	if err != nil {
		panic(err)
	}
	defer cache.Close(ctx)

	fmt.Println(cache.Get(ctx, "EUR"))
	failure = errors.New("the bank is closed")
	srv.Advance(10 * time.Minute)
	fmt.Println(cache.Get(ctx, "EUR"))
	srv.Advance(time.Hour)
	fmt.Println(cache.Get(ctx, "EUR"))
	// Output:
	// asking the bank
	// 1.09 <nil>
	// asking the bank
	// 1.09 <nil>
	// asking the bank
	// 0 cacheaside: get "cache:rate:EUR": the bank is closed
}

// A Codec is three methods, for msgpack or protobuf as here for gob.
type gobCodec[V any] struct{}

func (gobCodec[V]) Append(dst []byte, v V) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	err := gob.NewEncoder(buf).Encode(v)
	return buf.Bytes(), err
}

func (gobCodec[V]) Decode(src []byte) (v V, err error) {
	return v, gob.NewDecoder(bytes.NewReader(src)).Decode(&v)
}

func (gobCodec[V]) Format() string { return "gob/1" } // another number when old bytes must not be read again

func Example_codec() {
	rdb, stop := startRedis()
	defer stop()
	ctx := context.Background()
	points := mayfly.Namespace[string, [2]int]{Name: "points", Redis: rdb, Prefix: "cache:point:", TTL: time.Hour, Codec: gobCodec[[2]int]{}}
	cache := mayfly.Must(cacheaside.New(points, func(context.Context, string) ([2]int, error) { return [2]int{3, 4}, nil }, cacheaside.Options{}))
	defer cache.Close(ctx)
	cache.Get(ctx, "p")
	fmt.Println(cache.Get(ctx, "p"))
	// Output: [3 4] <nil>
}

// startRedis stands for the redis.NewClient of a program.
func startRedis() (redis.UniversalClient, func()) {
	m := miniredis.NewMiniRedis()
	rdb := redis.NewClient(&redis.Options{
		Addr:                  "127.0.0.1:1",
		Dialer:                func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
		ContextTimeoutEnabled: true,
	})
	if err := rdb.Ping(context.Background()).Err(); err != nil { // connects now, so that no example waits for it
		panic(err)
	}
	return rdb, func() { rdb.Close(); m.Close() }
}
