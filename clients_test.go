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

// Options that the caller sets stay.
func TestClientsKeepWhatIsSet(t *testing.T) {
	for name, make := range clients {
		rdb := mayfly.Must(make(&redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, ReadTimeout: 42 * time.Second, MaxRetries: 7, PoolSize: 3}))
		if o := rdb.(*redis.Client).Options(); o.ReadTimeout != 42*time.Second || o.MaxRetries != 7 || o.PoolSize != 3 || !o.ContextTimeoutEnabled {
			t.Errorf("%s: %+v", name, o)
		}
		rdb.Close()
	}
}

// All addresses that go-redis accepts are accepted: sockets, IPv6, sentinels with a database.
func TestClientsOfGoodOptions(t *testing.T) {
	for _, o := range []*redis.UniversalOptions{
		{Addrs: []string{"/run/redis.sock"}, DB: 3},
		{Addrs: []string{"[::1]:6379"}, Protocol: 2},
		{Addrs: []string{":6379"}, PipelinePoolSize: -1, MaxRetries: -1},
		{Addrs: []string{"a:26379", "b:26379"}, MasterName: "m", DB: 3},
	} {
		for name, make := range clients {
			if rdb, err := make(o); err != nil {
				t.Errorf("%s of %+v: %v", name, o, err)
			} else {
				rdb.Close()
			}
		}
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
			"Addrs[0] is empty: it takes a host":        {Addrs: []string{""}},
			`Addrs[1] is a URL, "redis://a:1": it`:      {Addrs: []string{"a:1", "redis://a:1"}},
			`Addrs[0] is a URL, "...@a:1": it`:          {Addrs: []string{"redis://me:secret@a:1"}},
			`Addrs[0] is "localhost": it takes`:         {Addrs: []string{"localhost"}},
			`Addrs[0] is "localhost:": it takes`:        {Addrs: []string{"localhost:"}},
			`Addrs[0] is "localhost:99999": it takes`:   {Addrs: []string{"localhost:99999"}},
			`Addrs[0] is "::1:6379": it takes`:          {Addrs: []string{"::1:6379"}},
			"Protocol must be 2 or 3, got 9":            {Addrs: addrs, Protocol: 9},
			"Protocol must be 2 or 3, got -1":           {Addrs: addrs, Protocol: -1},
			"DB is 1, and a cluster has database 0":     {Addrs: []string{"a:1", "b:1"}, DB: 1},
			"DB is 2, and a cluster has database 0":     {Addrs: addrs, IsClusterMode: true, DB: 2},
			"DB is 3, and a cluster has database 0":     {Addrs: addrs, MasterName: "m", RouteRandomly: true, DB: 3},
			"MinIdleConns must not be negative, got -1": {Addrs: addrs, MinIdleConns: -1},
			"MaxIdleConns must not be negative, got -2": {Addrs: addrs, MaxIdleConns: -2},
			"MaxActiveConns must not be negative":       {Addrs: addrs, MaxActiveConns: -1},
			"MaxConcurrentDials must not be negative":   {Addrs: addrs, MaxConcurrentDials: -1},
			"DialerRetries must not be negative":        {Addrs: addrs, DialerRetries: -1},
			"DialTimeout must not be negative, got -1s": {Addrs: addrs, DialTimeout: -time.Second},
			"PoolTimeout must not be negative, got -1s": {Addrs: addrs, PoolTimeout: -time.Second},
			"more than the MaxActiveConns of 2":         {Addrs: addrs, MinIdleConns: 3, MaxActiveConns: 2},
		} {
			if _, err := make(o); err == nil || !strings.HasPrefix(err.Error(), "mayfly: "+name+": ") || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: got %v, want %q", name, err, says)
			}
		}
	}
}
