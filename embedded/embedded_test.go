package embedded_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/embedded"
)

func open(t *testing.T, o embedded.Options) *embedded.DB {
	t.Helper()
	db, err := embedded.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return db
}

func TestWrongOptionsNameTheField(t *testing.T) {
	for _, test := range []struct {
		options embedded.Options
		says    string
	}{
		{embedded.Options{MaxMemory: -1}, "embedded: Options.MaxMemory must not be negative, got -1"},
		{embedded.Options{Policy: "lru"}, "embedded: Options.Policy must be one of "},
		{embedded.Options{Hz: 501}, "embedded: Options.Hz must be between 0 and 500, got 501"},
		{embedded.Options{Password: strings.Repeat("p", 513)}, "embedded: Options.Password must have at most 512 bytes, got 513"},
	} {
		if _, err := embedded.Open(test.options); err == nil || !strings.HasPrefix(err.Error(), test.says) {
			t.Errorf("%+v: got %v", test.options, err)
		}
	}
}

func TestMaxMemory(t *testing.T) {
	for _, policy := range []string{"", "allkeys-lru", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			const limit = 4 << 20
			rdb := open(t, embedded.Options{MaxMemory: limit, Policy: policy}).Client()
			refused := 0
			for i := range 10_000 {
				err := rdb.Set(t.Context(), fmt.Sprint("key:", i), strings.Repeat("v", 1000), time.Hour).Err()
				switch {
				case err == nil:
				case strings.HasPrefix(err.Error(), "OOM "):
					refused++
				default:
					t.Fatal(err)
				}
				if refused > 10 {
					break
				}
			}
			if (refused > 0) != (policy == "") {
				t.Errorf("%d writes were refused", refused)
			}
			if n := rdb.DBSize(t.Context()).Val(); n == 0 || n > limit/1000 {
				t.Errorf("%d keys of 1 kB in 4 MiB", n)
			}
		})
	}
}

func TestServe(t *testing.T) {
	db := open(t, embedded.Options{Password: "sesame"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- db.Serve(l) }()
	db.Client().Set(t.Context(), "k", "v", time.Hour)
	other := redis.NewClient(&redis.Options{Addr: l.Addr().String(), Password: "sesame"})
	defer other.Close()
	if v, err := other.Get(t.Context(), "k").Result(); v != "v" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	for range 2 {
		if err := db.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := db.Client().Ping(t.Context()).Err(); err == nil {
		t.Error("a closed DB answered")
	}
}

func TestHz(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := open(t, embedded.Options{Hz: 2}).Client()
		if got := rdb.ConfigGet(t.Context(), "hz").Val()["hz"]; got != "2" {
			t.Errorf("hz is %s", got)
		}
		// One key at a time: a cycle draws as many times as there are keys, and may miss one of two.
		rdb.Set(t.Context(), "a", "v", time.Second)
		time.Sleep(time.Second + 10*time.Millisecond) // a cycle ran when a was due
		rdb.Set(t.Context(), "b", "v", 10*time.Millisecond)
		time.Sleep(400 * time.Millisecond)
		synctest.Wait()
		if n := rdb.DBSize(t.Context()).Val(); n != 1 {
			t.Errorf("%d keys between two cycles, want the dead one that nobody asked for", n)
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if n := rdb.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%d keys after the second cycle", n)
		}
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := open(t, embedded.Options{Hz: 1})
		rdb, ctx := db.Client(), t.Context()
		rdb.Set(ctx, "first", "v", 10*time.Millisecond)
		time.Sleep(50 * time.Millisecond) // a cycle ran, and the next is a second away
		for i := range 10 {
			rdb.Set(ctx, string(rune('a'+i)), "v", time.Duration(i%2)*100*time.Millisecond)
		}
		rdb.Get(ctx, "a")
		rdb.Get(ctx, "nosuch")
		if s := db.Stats(); s.Keys != 10 || s.Expires != 5 || s.Dead != 0 || s.Expired != 1 || s.Hits != 1 || s.Misses != 1 || s.Commands < 12 {
			t.Errorf("%+v", s)
		}
		time.Sleep(200 * time.Millisecond)
		before := db.Stats()
		if before.Dead != 5 || before.Keys != 10 {
			t.Errorf("before the cycle: %+v", before)
		}
		time.Sleep(10 * time.Second)
		if s := db.Stats(); s.Dead != 0 || s.Keys != 5 || s.Expired != 6 || s.Memory > before.Memory-5*100 {
			t.Errorf("after the cycle: %+v", s)
		}
	})
}

func TestNilIsAnError(t *testing.T) {
	db, err := embedded.Open(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Serve(nil); err == nil || !strings.Contains(err.Error(), "net.Listen") {
		t.Errorf("Serve(nil): %v", err)
	}
	var none context.Context
	if err := db.Close(none); err == nil || !strings.Contains(err.Error(), "context.Background()") {
		t.Errorf("Close(nil): %v", err)
	}
	if err := db.Client().Ping(t.Context()).Err(); err != nil {
		t.Errorf("Close(nil) closed it: %v", err)
	}
	if err := db.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
