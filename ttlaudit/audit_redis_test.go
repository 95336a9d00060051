package ttlaudit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/ttlaudit"
)

// The tables of a server shrink while an audit is under way, which is when SCAN returns keys twice.
func TestTotalsWhileTheTableShrinks(t *testing.T) {
	for _, f := range []realredis.Flavour{realredis.Redis8, realredis.Redis7, realredis.Valkey} {
		t.Run(f.String(), func(t *testing.T) {
			rdb := realredis.Start(t, realredis.Options{Flavour: f}).Client()
			ctx := t.Context()
			const stay, gone = 4000, 60_000
			for i := 0; i < gone; i += 2000 {
				pipe := rdb.Pipeline()
				for j := i; j < i+2000; j++ {
					pipe.Set(ctx, fmt.Sprintf("gone:%d", j), "v", time.Hour)
					if j < stay {
						pipe.Set(ctx, fmt.Sprintf("stay:%d", j), "v", 0)
					}
				}
				if _, err := pipe.Exec(ctx); err != nil {
					t.Fatal(err)
				}
			}
			page, at := 0, 0
			r, err := ttlaudit.Run(ctx, rdb, ttlaudit.Options{MaxRate: -1, Sizes: -1, Progress: func(ttlaudit.Progress) {
				if page++; page < 3 || at == gone {
					return
				}
				pipe := rdb.Pipeline()
				for end := at + gone/12; at < end; at++ {
					pipe.Del(ctx, fmt.Sprintf("gone:%d", at))
				}
				pipe.Exec(ctx)
			}})
			if err != nil || r.NoTTL != stay {
				t.Errorf("%d keys without TTL of %d, %v", r.NoTTL, stay, err)
			}
		})
	}
}

func TestWhatAUserMayNotDo(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	ctx := t.Context()
	admin := srv.Client()
	admin.Set(ctx, "a:1", "v", 0)
	admin.HSet(ctx, "h:1", "f", "v")
	const base = "+scan +pttl +type +memory|usage +hrandfield +hpttl +dbsize +info"
	for _, test := range []struct {
		name, may, says string
		o               ttlaudit.Options
	}{
		{"all", base, "", ttlaudit.Options{}},
		{"scan", strings.ReplaceAll(base, "+scan", ""), "SCAN is not allowed to this user: ACL SETUSER <user> +scan", ttlaudit.Options{}},
		{"memory", strings.ReplaceAll(base, "+memory|usage", ""), "MEMORY USAGE is not allowed to this user: ACL SETUSER <user> +memory|usage", ttlaudit.Options{}},
		{"without sizes", "+scan +pttl +type", "", ttlaudit.Options{Sizes: -1}},
		{"without the rest", strings.ReplaceAll(strings.ReplaceAll(base, "+dbsize", ""), "+info", ""), "", ttlaudit.Options{}},
		{"fields", strings.ReplaceAll(base, "+hpttl", ""), "", ttlaudit.Options{}},
		{"sample", strings.ReplaceAll(base, "+dbsize", ""), "DBSIZE is not allowed", ttlaudit.Options{Keys: 1}},
	} {
		user := strings.ReplaceAll(test.name, " ", "-")
		if err := admin.Do(ctx, rules("ACL SETUSER "+user+" on >pw ~* "+test.may)...).Err(); err != nil {
			t.Fatal(err)
		}
		o := srv.Options()
		o.Username, o.Password = user, "pw"
		rdb := redis.NewClient(o)
		r, err := ttlaudit.Run(ctx, rdb, test.o)
		rdb.Close()
		switch {
		case test.says == "" && (err != nil || r.NoTTL != 2 || !r.Complete):
			t.Errorf("%s: %+v, %v", test.name, r, err)
		case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: %v", test.name, err)
		case test.says != "" && r != nil && (r.Complete || r.Keys != 0):
			t.Errorf("%s: %+v", test.name, r)
		case test.name == "fields" && !strings.HasPrefix(r.Hashes.Unknown, "NOPERM"):
			t.Errorf("%+v", r.Hashes)
		}
	}
}

func rules(line string) (args []any) {
	for _, word := range strings.Fields(line) {
		args = append(args, word)
	}
	return args
}

// The keys of a dead master are not covered, and the report says so. Those of the others are.
func TestADeadMaster(t *testing.T) {
	cluster := realredis.StartCluster(t, 3, 0, realredis.Options{Config: []string{"cluster-require-full-coverage no", "cluster-allow-reads-when-down yes"}})
	rdb, ctx := cluster.Client(), t.Context()
	fill(t, rdb, 3000)
	dead := cluster.Owner("config")
	lost := dead.Client().DBSize(ctx).Val()
	dead.Kill()
	r, err := ttlaudit.Run(ctx, rdb, ttlaudit.Options{MaxRate: -1})
	if err == nil || !strings.Contains(err.Error(), "audit of "+dead.Addr()) || r.Complete || r.Keys != 3047-lost {
		t.Fatalf("%+v, %v", r, err)
	}
	covered := 0
	for _, s := range r.Servers {
		if s.Covered != (s.Addr != dead.Addr()) || s.Covered != (s.Error == "") || s.Covered != (s.Keys > 0) {
			t.Errorf("%+v", s)
		}
		if s.Covered {
			covered++
		}
	}
	var text strings.Builder
	r.WriteText(&text)
	if covered != 2 || !strings.Contains(text.String(), "PARTIAL: 2 of 3 servers were covered\n  "+dead.Addr()+": 0 keys: ") {
		t.Errorf("%d covered:\n%.500s", covered, &text)
	}
}

// A server that is restarted has other cursors: nobody can say what was missed.
func TestRestartedMeanwhile(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	rdb := srv.Client()
	fill(t, rdb, 5000)
	pages := 0
	r, err := ttlaudit.Run(t.Context(), rdb, ttlaudit.Options{MaxRate: 50_000, Progress: func(ttlaudit.Progress) {
		if pages++; pages == 2 {
			srv.Restart()
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "restarted meanwhile") || r.Complete {
		t.Errorf("%+v, %v", r, err)
	}
}
