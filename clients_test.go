package mayfly_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
)

// A service makes its two clients from one set of options.
func ExampleDurableClient() {
	o := &redis.UniversalOptions{Addrs: []string{"localhost:6379"}}
	caches := mayfly.Must(mayfly.CacheClient(o))
	sessions := mayfly.Must(mayfly.DurableClient(o))
	defer caches.Close()
	defer sessions.Close()
	_, err := mayfly.CacheClient(&redis.UniversalOptions{})
	fmt.Println(err)
	// Output: mayfly: CacheClient: Addrs is empty: name the server, the nodes of the cluster, or, with MasterName, the sentinels
}

var clients = map[string]func(*redis.UniversalOptions) (redis.UniversalClient, error){
	"CacheClient": mayfly.CacheClient, "DurableClient": mayfly.DurableClient,
}

// A client for caches gives up when the answer is worth nothing any more, one for sessions later, and both with the context.
func TestHowLongClientsWait(t *testing.T) {
	hangs := func(context.Context, string, string) (net.Conn, error) {
		client, _ := net.Pipe()
		return client, nil
	}
	for name, within := range map[string][2]time.Duration{"CacheClient": {50 * time.Millisecond, 300 * time.Millisecond}, "DurableClient": {time.Second, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			o := &redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: hangs}
			rdb := mayfly.Must(clients[name](o))
			defer rdb.Close()
			begun := time.Now()
			err := rdb.Get(context.Background(), "k").Err()
			if took := time.Since(begun); err == nil || took < within[0] || took > within[1] {
				t.Errorf("%s: %v after %v", name, err, took)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			begun = time.Now()
			err = rdb.Get(ctx, "k").Err()
			if took := time.Since(begun); err == nil || took > 20*time.Millisecond {
				t.Errorf("%s: %v after %v, where the context has 20ms", name, err, took)
			}
			if o.ReadTimeout != 0 || o.ContextTimeoutEnabled {
				t.Errorf("%s changed the caller's options", name)
			}
		})
	}
}

// What the caller sets stays.
func TestClientsKeepWhatIsSet(t *testing.T) {
	for name, make := range clients {
		rdb := mayfly.Must(make(&redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, ReadTimeout: 42 * time.Second, MaxRetries: 7, PoolSize: 3}))
		if o := rdb.(*redis.Client).Options(); o.ReadTimeout != 42*time.Second || o.MaxRetries != 7 || o.PoolSize != 3 || !o.ContextTimeoutEnabled {
			t.Errorf("%s: %+v", name, o)
		}
		rdb.Close()
	}
}

func TestClientsOfBadOptions(t *testing.T) {
	addrs := []string{"127.0.0.1:1"}
	for name, make := range clients {
		for says, o := range map[string]*redis.UniversalOptions{
			"the options are nil":                       nil,
			"Addrs is empty":                            {},
			"PoolSize must not be negative, got -1":     {Addrs: addrs, PoolSize: -1},
			"DB must not be negative, got -2":           {Addrs: addrs, DB: -2},
			"ReadTimeout -1ns and WriteTimeout 0s must": {Addrs: addrs, ReadTimeout: -1},
		} {
			if _, err := make(o); err == nil || !strings.HasPrefix(err.Error(), "mayfly: "+name+": ") || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: got %v, want %q", name, err, says)
			}
		}
	}
}
