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
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// master is the master of a DB in a test: an engine, or a real Redis.
type master struct {
	name   string
	addr   string
	fields bool
	o      *redis.Options
	rdb    *redis.Client
}

// masters calls test with an engine, and with each available real server.
func masters(t *testing.T, test func(t *testing.T, m master)) {
	t.Run("engine", func(t *testing.T) {
		db, port := served(t, embedded.Options{})
		test(t, master{"engine", "127.0.0.1:" + port, true, clientOptions(db), db.Client()})
	})
	for _, flavour := range []realredis.Flavour{realredis.Redis8, realredis.Redis86, realredis.Redis7, realredis.Valkey} {
		for _, form := range []string{"yes", "no"} { // the snapshot with a mark at its end, or with its length at the beginning
			t.Run(flavour.String()+" diskless="+form, func(t *testing.T) {
				srv := realredis.Start(t, realredis.Options{Flavour: flavour, Config: []string{"repl-diskless-sync " + form, "repl-diskless-sync-delay 0", "repl-backlog-size 10mb"}})
				test(t, master{flavour.String(), srv.Addr(), flavour.HasFieldTTL(), srv.Options(), srv.Client()})
			})
		}
	}
}

// plug returns the address of a cable to addr, and a function that cuts all present connections.
func plug(t *testing.T, addr string) (string, func() int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	conns := make(chan net.Conn, 1000)
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", addr)
			if err != nil {
				a.Close()
				continue
			}
			conns <- a
			conns <- b
			go copyTo(a, b)
			go copyTo(b, a)
		}
	}()
	return l.Addr().String(), func() (n int) {
		for {
			select {
			case c := <-conns:
				c.Close()
				n++
			default:
				return n
			}
		}
	}
}

func copyTo(to, from net.Conn) {
	defer to.Close()
	b := make([]byte, 4096)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// caughtUp waits until db has carried out everything that m did.
func caughtUp(t *testing.T, db *embedded.DB, m master) {
	t.Helper()
	expect.Eventually(t, "the replica has caught up", func() bool {
		info := db.Client().Info(t.Context(), "replication").Val()
		return strings.Contains(info, "master_link_status:up") &&
			field(m.rdb.Info(t.Context(), "replication").Val(), "master_repl_offset") == field(info, "slave_repl_offset")
	})
}

// A DB that follows has its master's keys, values and deadlines to the millisecond: after the synchronisation, after later writes, after its
// link was cut in the middle of writes, and after its promotion. Until then it removes nothing on its own, and refuses writes.
func TestFollowing(t *testing.T) {
	t.Parallel()
	masters(t, func(t *testing.T, m master) {
		ctx := t.Context()
		fill(t, m.rdb, m.fields)
		addr, cut := plug(t, m.addr)
		dir := t.TempDir()
		db := open(t, embedded.Options{Dir: dir, ReplicaOf: addr})
		if err := db.InStep(ctx); err != nil {
			t.Fatal(err)
		}
		same(t, "after the synchronisation", contents(t, clientOptions(db)), contents(t, m.o))
		if err := db.Client().Set(ctx, "k", "v", 0).Err(); err == nil || err.Error() != "READONLY You can't write against a read only replica." {
			t.Errorf("a write: %v", err)
		}

		for round := range effort.Times(1, 30) {
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for i := range 3000 { // no more than the backlog holds
					select {
					case <-stop:
						return
					default:
					}
					pipe := m.rdb.TxPipeline()
					pipe.Set(context.Background(), fmt.Sprint("k:", i%50), i, time.Duration(i%7+1)*time.Minute)
					pipe.RPush(context.Background(), "pushed", i)
					pipe.Exec(context.Background())
				}
			}()
			before := db.Replication().Offset
			expect.Eventually(t, "some writes came", func() bool { return db.Replication().Offset > before+1000 })
			if cut() == 0 {
				t.Error("there was nothing to cut")
			}
			expect.Eventually(t, "the link is there again", func() bool { return db.Replication().InStep })
			close(stop)
			<-stopped
			caughtUp(t, db, m)
			same(t, fmt.Sprint("after cut ", round), contents(t, clientOptions(db)), contents(t, m.o))
		}
		if stats := m.rdb.Info(ctx, "stats").Val(); field(stats, "sync_full") != "1" || field(stats, "sync_partial_ok") == "0" {
			t.Errorf("synchronised %s times in full, %s times in part", field(stats, "sync_full"), field(stats, "sync_partial_ok"))
		}
		if n, err := m.rdb.Do(ctx, "WAIT", 1, 5000).Int(); n != 1 || err != nil {
			t.Errorf("WAIT: %d, %v", n, err)
		}

		want := contents(t, m.o)
		caughtUp(t, db, m)
		if err := db.Promote(); err != nil {
			t.Fatal(err)
		}
		same(t, "promoted", contents(t, clientOptions(db)), want)
		m.rdb.Set(ctx, "late", "v", 0)
		if err := db.Client().Set(ctx, "own", "v", 20*time.Millisecond).Err(); err != nil {
			t.Error(err)
		}
		expect.Eventually(t, "it expires by itself", func() bool { return field(db.Client().Info(ctx, "stats").Val(), "expired_keys") == "1" })
		if db.Client().Exists(ctx, "late").Val() != 0 {
			t.Error("it follows on")
		}
		db.Client().Del(ctx, "own")
		if err := db.Close(ctx); err != nil {
			t.Fatal(err)
		}
		again := open(t, embedded.Options{Dir: dir})
		same(t, "started again", contents(t, clientOptions(again)), want)
	})
}

// Expired keys are hidden at once, and removed when the master says so.
func TestAReplicaHidesAndDoesNotDelete(t *testing.T) {
	masters(t, func(t *testing.T, m master) {
		ctx := t.Context()
		m.rdb.Do(ctx, "DEBUG", "SET-ACTIVE-EXPIRE", "0")
		db := open(t, embedded.Options{ReplicaOf: m.addr})
		if err := db.InStep(ctx); err != nil {
			t.Fatal(err)
		}
		if err := m.rdb.Do(ctx, "DEBUG", "SET-ACTIVE-EXPIRE", "0").Err(); err != nil {
			t.Skipf("%s cannot be kept from expiring: %v", m.name, err)
		}
		m.rdb.Set(ctx, "short", "v", 50*time.Millisecond)
		rdb := db.Client()
		expect.Eventually(t, "it came", func() bool { return rdb.DBSize(ctx).Val() == 1 })
		expect.Eventually(t, "it is hidden", func() bool { return rdb.Exists(ctx, "short").Val() == 0 && rdb.Get(ctx, "short").Err() == redis.Nil })
		if n := rdb.DBSize(ctx).Val(); n != 1 {
			t.Errorf("%d keys: the replica removed one of itself", n)
		}
		m.rdb.Get(ctx, "short") // the master finds it, and says so
		expect.Eventually(t, "it is gone", func() bool { return rdb.DBSize(ctx).Val() == 0 })
	})
}
