package realredis

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A server that is somebody's gives tests the databases that were empty, and has everything else unchanged after them.
func TestTheServerOfRedisAddrIsLeftAsItWas(t *testing.T) {
	ctx := context.Background()
	s := Start(t, Options{})
	for _, db := range []int{0, 2} {
		opts := s.Options()
		opts.DB = db
		rdb := redis.NewClient(opts)
		defer rdb.Close()
		if err := rdb.Set(ctx, "precious", db, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("REDIS_ADDR", s.Addr())
	t.Run("tests", func(t *testing.T) {
		var dbs []int
		for range 3 {
			r := Start(t, Options{})
			dbs = append(dbs, r.Options().DB)
			if !Redis8.fits(r.Version()) {
				t.Errorf("Version() = %v", r.Version())
			}
			if n := r.Client().DBSize(ctx).Val(); n != 0 {
				t.Errorf("database %d holds %d keys", r.Options().DB, n)
			}
			if err := r.Client().Set(ctx, "k", "v", 0).Err(); err != nil {
				t.Error(err)
			}
		}
		if fmt.Sprint(dbs) != "[1 3 4]" {
			t.Errorf("tests were given the databases %v, want [1 3 4]: 0 and 2 are somebody's", dbs)
		}
	})
	keyspace := s.Client().Info(ctx, "keyspace").Val()
	if !strings.Contains(keyspace, "db0:keys=1,") || !strings.Contains(keyspace, "db2:keys=1,") || strings.Count(keyspace, "db") != 2 {
		t.Errorf("afterwards the server holds %s", keyspace)
	}
}

func TestAServerOfRedisAddrWithoutAnEmptyDatabaseIsRefused(t *testing.T) {
	ctx := context.Background()
	s := Start(t, Options{Config: []string{"databases 2"}})
	opts := s.Options()
	opts.DB = 1
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	if err := rdb.Set(ctx, "precious", 1, 0).Err(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDIS_ADDR", s.Addr())
	if v := watch(t, func(t testing.TB) { Start(t, Options{}) }); !strings.Contains(v.failed, errFull.Error()) {
		t.Errorf("%+v, want %v", v, errFull)
	}
	if keys := s.Client().Keys(ctx, "*").Val(); len(keys) != 0 {
		t.Errorf("it left %v", keys)
	}

	// Where another test holds the only one, Start waits for it.
	rdb.FlushDB(ctx)
	t.Run("first", func(t *testing.T) {
		Start(t, Options{})
		root := s.Client()
		if err := (&Server{t: t, external: &external{addr: s.addr()}}).claim(ctx, root); err != errBusy {
			t.Errorf("claim = %v, want %v", err, errBusy)
		}
	})
	t.Run("second", func(t *testing.T) { Start(t, Options{}) })
}

func TestTheServerOfRedisAddrIsNotBroken(t *testing.T) {
	s := Start(t, Options{})
	t.Setenv("REDIS_ADDR", s.Addr())
	for name, f := range map[string]func(*Server){
		"Addr": func(s *Server) { s.Addr() }, "Stop": (*Server).Stop, "Kill": (*Server).Kill, "Restart": (*Server).Restart,
		"Pause": (*Server).Pause, "Resume": (*Server).Resume,
	} {
		t.Setenv("MAYFLY_REQUIRE_REDIS", "")
		if v := watch(t, func(t testing.TB) { f(Start(t, Options{})) }); !strings.Contains(v.skipped, "SKIPPED-NO-REDIS") {
			t.Errorf("%s: %+v, want a skip", name, v)
		}
		t.Setenv("MAYFLY_REQUIRE_REDIS", "1")
		if v := watch(t, func(t testing.TB) { f(Start(t, Options{})) }); !strings.Contains(v.failed, "REDIS_ADDR") {
			t.Errorf("%s: %+v, want a failure", name, v)
		}
	}
	if own := Start(t, Options{Config: []string{"maxmemory 5mb"}}); own.Addr() == s.Addr() {
		t.Error("a server with a configuration of its own must be our own")
	}
}

func TestTheServerOfRedisAddrMustBeRedis8(t *testing.T) {
	s := Start(t, Options{Flavour: Redis7})
	t.Setenv("REDIS_ADDR", s.Addr())
	if v := watch(t, func(t testing.TB) { Start(t, Options{}) }); !strings.Contains(v.failed, "must name a Redis 8.0 or newer, got Redis 7.0") {
		t.Errorf("%+v", v)
	}
	s.Kill()
	if v := watch(t, func(t testing.TB) { Start(t, Options{}) }); !strings.Contains(v.failed, "REDIS_ADDR="+s.Addr()) {
		t.Errorf("%+v", v)
	}
}
