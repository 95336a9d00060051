package cacheaside_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/jitter"
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
		Addr:   "127.0.0.1:1",
		Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
	})
	return rdb, func() { rdb.Close(); m.Close() }
}
