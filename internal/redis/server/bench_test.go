package server_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// BenchmarkGoRedis is the cost of a command in a user's test.
func BenchmarkGoRedis(b *testing.B) {
	ctx := context.Background()
	s := start(b, engine.Options{}, server.Options{})
	addr := listen(b, s, "tcp")
	for name, rdb := range map[string]*redis.Client{
		"memory": goredis(b, s),
		"tcp":    redis.NewClient(&redis.Options{Addr: addr}),
	} {
		rdb.Set(ctx, "k", "v", time.Hour)
		b.Run("GET/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := rdb.Get(ctx, "k").Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("pipeline of 100/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
					for range 100 {
						p.Get(ctx, "k")
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		rdb.Close()
	}
}

// BenchmarkBatch is a pipeline of 16, as redis-benchmark -P 16 sends it.
func BenchmarkBatch(b *testing.B) {
	s := start(b, engine.Options{}, server.Options{})
	tcp, err := net.Dial("tcp", listen(b, s, "tcp"))
	if err != nil {
		b.Fatal(err)
	}
	for name, conn := range map[string]net.Conn{"memory": dial(b, s).Conn, "tcp": tcp} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			batch := strings.Repeat("*3\r\n$3\r\nSET\r\n$16\r\nkey:__rand_int__\r\n$3\r\nxxx\r\n", 16)
			replies := make([]byte, 16*len("+OK\r\n"))
			for b.Loop() {
				io.WriteString(conn, batch)
				if _, err := io.ReadFull(conn, replies); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	tcp.Close()
}

// BenchmarkServer is the life of a server: it is started, asked once, and closed.
func BenchmarkServer(b *testing.B) {
	b.ReportAllocs()
	reply := make([]byte, 10)
	for b.Loop() {
		s, _ := server.New(engine.New(engine.Options{}), server.Options{})
		conn, _ := s.Dial(b.Context(), "", "")
		io.WriteString(conn, "PING\r\n")
		conn.Read(reply)
		conn.Close()
		s.Close(b.Context())
	}
}
