package embedded_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// served opens a DB and serves it, and returns the port.
func served(t *testing.T, o embedded.Options) (*embedded.DB, string) {
	t.Helper()
	db := open(t, o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go db.Serve(l)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return db, port
}

// attach makes srv a replica of the server at port, and waits until it is in step.
func attach(t *testing.T, db *embedded.DB, srv *realredis.Server, port string) {
	t.Helper()
	if err := srv.Client().Do(t.Context(), "REPLICAOF", "127.0.0.1", port).Err(); err != nil {
		t.Fatal(err)
	}
	inStep(t, db, srv)
}

// inStep waits until srv has carried out everything that db did.
func inStep(t *testing.T, db *embedded.DB, srv *realredis.Server) {
	t.Helper()
	rdb := srv.Client()
	expect.Eventually(t, "the replica is in step", func() bool {
		info := rdb.Info(t.Context(), "replication").Val()
		mine := field(db.Client().Info(t.Context(), "replication").Val(), "master_repl_offset")
		return strings.Contains(info, "master_link_status:up") && mine == field(info, "slave_repl_offset")
	})
}

func field(info, name string) string {
	_, rest, _ := strings.Cut(info, name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// A real Redis that replicates the engine has its keys, values and deadlines, learns what expires, continues from the backlog after its link
// was cut, and takes the engine's place once it is promoted.
func TestRedisReplicatesTheEngine(t *testing.T) {
	for _, flavour := range []realredis.Flavour{realredis.Redis8, realredis.Redis86, realredis.Redis7, realredis.Valkey} {
		t.Run(flavour.String(), func(t *testing.T) {
			srv := realredis.Start(t, realredis.Options{Flavour: flavour, Config: []string{"repl-diskless-sync-delay 0"}})
			db, port := served(t, embedded.Options{})
			rdb, ctx := db.Client(), t.Context()
			fields := flavour.HasFieldTTL()
			fill(t, rdb, fields)
			attach(t, db, srv, port)
			same(t, "after the synchronisation", contents(t, srv.Options()), contents(t, clientOptions(db)))

			fill(t, rdb, fields)
			rdb.Set(ctx, "short", "v", 50*time.Millisecond)
			rdb.Incr(ctx, "counter")
			if n, err := rdb.Do(ctx, "WAIT", 1, 5000).Int(); n != 1 || err != nil {
				t.Errorf("WAIT: %d, %v", n, err)
			}
			its := srv.Client()
			expect.Eventually(t, "what expired is gone", func() bool {
				return rdb.Exists(ctx, "short").Val() == 0 && its.DBSize(ctx).Val() == rdb.DBSize(ctx).Val()
			})
			same(t, "after the feed", contents(t, srv.Options()), contents(t, clientOptions(db)))

			// The link is cut, and what was written meanwhile comes from the backlog.
			if n, err := rdb.ClientKillByFilter(ctx, "ID", replicaID(t, rdb)).Result(); n != 1 || err != nil {
				t.Errorf("%d connections were cut, %v", n, err)
			}
			rdb.Set(ctx, "meanwhile", "v", time.Hour)
			inStep(t, db, srv)
			same(t, "after the cut", contents(t, srv.Options()), contents(t, clientOptions(db)))
			if stats := rdb.Info(ctx, "stats").Val(); field(stats, "sync_full") != "1" || field(stats, "sync_partial_ok") != "1" {
				t.Errorf("synchronised %s times in full, %s times in part", field(stats, "sync_full"), field(stats, "sync_partial_ok"))
			}
			if info := rdb.Info(ctx, "replication").Val(); !strings.Contains(info, "connected_slaves:1") || !strings.Contains(info, "state=online") {
				t.Errorf("INFO: %s", info)
			}

			want := contents(t, clientOptions(db))
			if err := srv.Client().Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
				t.Fatal(err)
			}
			same(t, "promoted", contents(t, srv.Options()), want)
			if err := srv.Client().Set(ctx, "own", "v", time.Hour).Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// replicaID returns the id of the connection of the replica.
func replicaID(t *testing.T, rdb *redis.Client) string {
	t.Helper()
	for line := range strings.Lines(rdb.ClientList(t.Context()).Val()) {
		if strings.Contains(line, "cmd=replconf") || strings.Contains(line, "cmd=psync") {
			return strings.TrimPrefix(strings.Fields(line)[0], "id=")
		}
	}
	t.Fatal("there is no replica")
	return ""
}

// Commands go on while a snapshot is sent to a replica.
func TestRedisSynchronisesBesideWrites(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	db, port := served(t, embedded.Options{})
	rdb, ctx := db.Client(), t.Context()
	for i := range 200 {
		pipe := rdb.Pipeline()
		for j := range 100 {
			pipe.Set(ctx, fmt.Sprintf("key:%d:%d", i, j), strings.Repeat("v", 50), time.Hour)
			pipe.RPush(ctx, "list", j)
		}
		pipe.Exec(ctx)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			rdb.RPush(context.Background(), "list", i)
			rdb.Incr(context.Background(), fmt.Sprintf("n:%d", i%100))
			rdb.Del(context.Background(), fmt.Sprintf("key:%d:%d", i%200, i%100))
			rdb.LTrim(context.Background(), "list", -20_000, -1)
		}
	}()
	if err := srv.Client().Do(ctx, "REPLICAOF", "127.0.0.1", port).Err(); err != nil {
		t.Fatal(err)
	}
	its := srv.Client()
	expect.Eventually(t, "the link is up", func() bool {
		return strings.Contains(its.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	close(stop)
	<-stopped
	inStep(t, db, srv)
	same(t, "the replica", contents(t, srv.Options()), contents(t, clientOptions(db)))
}
