package mayfly_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
)

// A call on a server that hangs, or that cannot be reached, is over within 200 ms, without any context.
func TestTunedOptionsBoundACall(t *testing.T) {
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
			o := mayfly.TunedOptions()
			o.Addrs, o.Dialer = []string{"127.0.0.1:1"}, dial
			rdb := redis.NewUniversalClient(o)
			defer rdb.Close()
			begun := time.Now()
			err := rdb.Get(context.Background(), "k").Err()
			if took := time.Since(begun); err == nil || took > 300*time.Millisecond {
				t.Errorf("a server that %s: %v after %v", name, err, took)
			}
		})
	}
}
