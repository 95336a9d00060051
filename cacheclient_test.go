package mayfly_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
)

// More callers than connections wait for one another.
func TestACacheClientLetsACrowdWait(t *testing.T) {
	srv := redistest.Start(t)
	srv.Latency(5 * time.Millisecond)
	rdb := mayfly.Must(mayfly.CacheClient(&redis.UniversalOptions{
		Addrs: []string{"127.0.0.1:1"}, Dialer: srv.Dial, PoolSize: 1,
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, // the machine may be busy
	}))
	defer rdb.Close()
	var callers sync.WaitGroup
	for range 15 { // the last of them for 70 ms
		callers.Go(func() {
			if err := rdb.Incr(t.Context(), "n").Err(); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
}

// A call on a server that hangs, or that cannot be reached, is over within 200 ms, without any context.
func TestACacheClientBoundsACall(t *testing.T) {
	for name, dial := range map[string]func(ctx context.Context, network, addr string) (net.Conn, error){
		"hangs": func(context.Context, string, string) (net.Conn, error) {
			client, _ := net.Pipe()
			return client, nil
		},
		"cannot be reached": func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"is closed": func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") },
	} {
		synctest.Test(t, func(t *testing.T) {
			rdb := mayfly.Must(mayfly.CacheClient(&redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: dial}))
			defer rdb.Close()
			begun := time.Now()
			err := rdb.Get(context.Background(), "k").Err()
			if took := time.Since(begun); err == nil || took > 300*time.Millisecond {
				t.Errorf("a server that %s: %v after %v", name, err, took)
			}
		})
	}
}
