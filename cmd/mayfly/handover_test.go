package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/proxy"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// serving runs mayfly serve and returns its address, and a client.
func serving(t *testing.T, flags ...string) (addr string, rdb *redis.Client) {
	t.Helper()
	banner, stop := started(t, append([]string{"--addr", "127.0.0.1:0"}, flags...)...)
	t.Cleanup(func() { stop() })
	addr = addresses.FindString(banner)
	o := &redis.Options{Addr: addr, MaxRetries: -1}
	for i, f := range flags {
		if f == "--requirepass" {
			o.Password = flags[i+1]
		}
	}
	rdb = redis.NewClient(o)
	t.Cleanup(func() { rdb.Close() })
	return addr, rdb
}

func newTestClient(t *testing.T, addr string) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// handing runs mayfly handover.
func handing(t *testing.T, flags ...string) (out string, code int) {
	var said, complaints bytes.Buffer
	code = run(t.Context(), append([]string{"handover"}, flags...), &said, &complaints)
	return said.String() + complaints.String(), code
}

// some writes keys with ends into two databases.
func some(t *testing.T, rdb *redis.Client) {
	t.Helper()
	ctx := t.Context()
	pipe := rdb.Pipeline()
	for i := range 300 {
		pipe.Set(ctx, fmt.Sprint("k", i), i, time.Duration(i)*time.Minute)
		pipe.RPush(ctx, fmt.Sprint("list", i%10), i)
	}
	pipe.Do(ctx, "SELECT", 5)
	pipe.Set(ctx, "five", "v", time.Hour)
	pipe.Do(ctx, "SELECT", 0)
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
}

// While a program writes, all it has moves to another server: what was acknowledged is there, with the same ends; afterwards the old one refuses writes,
// and sees those of the new one.
func TestHandOver(t *testing.T) {
	targets := map[string]func(t *testing.T) *redis.Options{
		"engine": func(t *testing.T) *redis.Options {
			_, rdb := serving(t, "--requirepass", "new")
			return rdb.Options()
		},
	}
	for _, f := range []realredis.Flavour{realredis.Redis8, realredis.Redis86, realredis.Redis7, realredis.Valkey} {
		targets[f.String()] = func(t *testing.T) *redis.Options {
			srv := realredis.Start(t, realredis.Options{Flavour: f})
			if err := srv.Client().ConfigSet(t.Context(), "requirepass", "new").Err(); err != nil {
				t.Fatal(err)
			}
			return srv.Options()
		}
	}
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			addr, rdb := serving(t, "--requirepass", "sesame")
			some(t, rdb)
			o := *target(t)
			o.Password = "new"
			to := redis.NewClient(&o)
			defer to.Close()

			var acknowledged, refused atomic.Int64
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for i := int64(1); refused.Load() == 0; i++ {
					select {
					case <-stop:
						return
					default:
					}
					if err := rdb.Set(context.Background(), "last", i, time.Hour).Err(); err == nil {
						acknowledged.Store(i)
					} else if strings.HasPrefix(err.Error(), "READONLY") {
						refused.Store(i)
					} else {
						t.Error(err)
						return
					}
				}
			}()
			from, into := "redis://:sesame@"+addr, "redis://:new@"+o.Addr
			if out, code := handing(t, "--from", from, "--to", into, "--dry-run"); code != 0 || !strings.Contains(out, "nothing was changed") || to.DBSize(ctx).Val() != 0 {
				t.Fatalf("exit %d:\n%s", code, out)
			}
			out, code := handing(t, "--from", from, "--to", into)
			close(stop)
			<-stopped
			if code != 0 || !strings.Contains(out, fmt.Sprintf("Addr: %q", o.Addr)) || !strings.Contains(out, "READONLY") {
				t.Fatalf("exit %d:\n%s", code, out)
			}
			if n, err := to.Get(ctx, "last").Int64(); n != acknowledged.Load() || err != nil {
				t.Errorf("the target has write %d, and %d was acknowledged (%v)", n, acknowledged.Load(), err)
			}
			if role := fmt.Sprint(to.Do(ctx, "ROLE").Slice()); !strings.HasPrefix(role, "[master") {
				t.Errorf("the target is %s", role)
			}
			if got := to.ConfigGet(ctx, "masterauth").Val()["masterauth"]; got != "" {
				t.Errorf("the target keeps the source's password: %q", got)
			}
			if err := to.Set(ctx, "new", "v", time.Hour).Err(); err != nil {
				t.Error(err)
			}
			expect.Eventually(t, "the source sees it", func() bool { return rdb.Get(ctx, "new").Val() == "v" })
			for i := range 300 {
				key := fmt.Sprint("k", i)
				if was, is := rdb.PExpireTime(ctx, key).Val(), to.PExpireTime(ctx, key).Val(); was != is || is == -2 {
					t.Errorf("%s ends at %d, and ended at %d", key, is, was)
				}
			}
			if n := to.Do(ctx, "DBSIZE").Val(); n != int64(312) {
				t.Errorf("%v keys", n)
			}
		})
	}
}

// A target that is told to follow and never gets in step: the source takes writes afterwards.
func TestHandOverToATargetThatCannotReachTheSource(t *testing.T) {
	t.Parallel() // it waits for what does not come
	addr, rdb := serving(t)
	some(t, rdb)
	target, _ := serving(t)
	nobody := refusing(t)
	out, code := handing(t, "--from", "redis://"+addr, "--to", "redis://"+target, "--reach", nobody, "--within", "1s")
	if says := "not in step within 1s: can it reach " + nobody + "? Give another address with --reach. So far: the target was told to follow, " +
		"but does not have everything yet. The source takes writes"; code != 1 || !strings.Contains(out, says) {
		t.Errorf("exit %d: %s", code, out)
	}
	expect.OK(t, rdb.Set(t.Context(), "on", "v", time.Hour).Err())
}

// refusing returns an address where nobody listens.
func refusing(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Whatever goes wrong, the source takes writes afterwards, and the complaint says how far it came.
func TestHandOverGivesUp(t *testing.T) {
	t.Parallel() // it waits for what does not come
	addr, rdb := serving(t)
	some(t, rdb)
	other, _ := serving(t)
	full, fullRDB := serving(t)
	fullRDB.Set(t.Context(), "mine", "v", time.Hour)
	small, _ := serving(t, "--maxmemory", "20kb")
	cluster, _ := serving(t, "--cluster=1")
	nobody := refusing(t)
	from := []string{"--from", "redis://" + addr}
	for _, test := range []struct {
		name  string
		flags []string
		code  int
		says  string
	}{
		{"nothing to do", nil, 2, "--from and --to are required"},
		{"no URL", []string{"--to", "x"}, 2, "--to cannot be used"},
		{"no address", []string{"--to", "redis://" + other, "--reach", "x"}, 2, "--reach must be host:port"},
		{"no time", []string{"--to", "redis://" + other, "--pause", "1s"}, 2, "--pause must be 2s or more"},
		{"nobody there", []string{"--to", "redis://" + nobody}, 1, "connection refused. Nothing was changed"},
		{"itself", []string{"--to", "redis://" + addr}, 1, "are the same server. Nothing was changed"},
		{"not empty", []string{"--to", "redis://" + full}, 1, "holds 1 keys, which would be lost: empty it, or give --overwrite to discard them. Nothing was changed"},
		{"too small", []string{"--to", "redis://" + small}, 1, "(maxmemory), but the data takes"},
		{"a cluster", []string{"--to", "redis://" + cluster}, 1, "is a node of a cluster"},
	} {
		t.Run(test.name, func(t *testing.T) {
			flags := append(from, test.flags...)
			if test.flags == nil {
				flags = nil
			}
			var complaints bytes.Buffer
			code := run(t.Context(), append([]string{"handover"}, flags...), io.Discard, &complaints)
			if code != test.code || !strings.Contains(complaints.String(), test.says) {
				t.Errorf("exit %d: %s", code, &complaints)
			}
			if err := rdb.Set(t.Context(), "on", "v", time.Hour).Err(); err != nil {
				t.Errorf("the source: %v", err)
			}
		})
	}
	if fullRDB.Get(t.Context(), "mine").Val() != "v" {
		t.Error("the target lost its key")
	}
	t.Run("the target is cut off as it is told", func(t *testing.T) {
		fresh, _ := serving(t)
		p := proxy.Start(t, fresh)
		p.CutBefore("replicaof", "")
		out, code := handing(t, append(from, "--to", "redis://"+p.Addr())...)
		if code != 1 || !strings.Contains(out, "So far: the target was told to follow, but it is unknown whether it does. The source takes writes") ||
			!strings.HasSuffix(out, "The target no longer follows it, and holds no keys\n") {
			t.Errorf("exit %d: %s", code, out)
		}
	})
	t.Run("the source does not find the target", func(t *testing.T) {
		defer func(d time.Duration) { linkWithin = d }(linkWithin)
		linkWithin = 300 * time.Millisecond // nobody is there
		promoted, to := serving(t)
		lost, lostRDB := serving(t)
		some(t, lostRDB)
		out, code := handing(t, "--from", "redis://"+lost, "--to", "redis://"+promoted, "--reach-back", nobody)
		if says := "the source cannot reach " + nobody + ": its reads stay as they are"; code != exitPartial || !strings.Contains(out, says) ||
			strings.Contains(out, "follows it now") || !strings.Contains(out, fmt.Sprintf("Addr: %q", promoted)) {
			t.Errorf("exit %d: %s", code, out)
		}
		if err := to.Set(t.Context(), "on", "v", time.Hour).Err(); err != nil {
			t.Errorf("the target: %v", err)
		}
		if err := lostRDB.Set(t.Context(), "on", "v", time.Hour).Err(); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
			t.Errorf("the source: %v", err)
		}
	})
	t.Run("overwritten", func(t *testing.T) {
		if out, code := handing(t, append(from, "--to", "redis://"+full, "--overwrite")...); code != 0 {
			t.Errorf("exit %d: %s", code, out)
		}
		if fullRDB.Exists(t.Context(), "mine").Val() != 0 || fullRDB.Exists(t.Context(), "k1").Val() != 1 {
			t.Error("the target does not have the source's keys")
		}
		out, code := handing(t, append(from, "--to", "redis://"+other)...)
		if code != 1 || !strings.Contains(out, "is a replica of 127.0.0.1:") {
			t.Errorf("a source that was handed over: exit %d: %s", code, out)
		}
	})
}
