package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// outage is a PostgreSQL with ten connections, a Redis, and processes whose callers ask for four times what the database can do.
type outage struct {
	t        *testing.T
	business business
	shops    []*processes.Process
	redis    *realredis.Server
	rdb      *redis.Client
	database *pgx.Conn // as the superuser, whose connections are not of the ten

	ended, answered atomic.Int64 // Gets of all shops
}

const (
	connections = 10
	query       = 50 * time.Millisecond
	capacity    = connections * int(time.Second/query) // queries a second
	asked       = 4 * capacity                         // gets a second
	reserved    = 3                                    // connections that PostgreSQL keeps for superusers
)

// startOutage starts the servers, and so many processes. They divide the connections and the callers among them.
func startOutage(t *testing.T, shops int, b business) *outage {
	server := realredis.Start(t, realredis.Options{})
	at := startPostgres(t, connections+reserved)
	o := &outage{t: t, business: b, shops: make([]*processes.Process, shops), redis: server, rdb: server.Client()}
	o.database = expect.Value(pgx.Connect(t.Context(), at))(t)
	t.Cleanup(func() { o.database.Close(context.Background()) })
	_, err := o.database.Exec(t.Context(), "CREATE ROLE clerk LOGIN; CREATE SEQUENCE queries; GRANT USAGE ON SEQUENCE queries TO clerk")
	expect.OK(t, err)
	u := expect.Value(url.Parse(at))(t)
	q := u.Query()
	q.Set("user", "clerk")
	u.RawQuery = q.Encode()
	o.business.Database, o.business.Query = u.String(), query
	o.business.Connections, o.business.Gets = connections/shops, asked/shops
	o.deploy()
	return o
}

// deploy kills all shops, wherever they are in what they do, and starts new ones.
func (o *outage) deploy() {
	for _, p := range o.shops {
		if p != nil {
			p.Cmd.Process.Kill()
			p.Cmd.Wait()
		}
	}
	task := string(expect.Value(json.Marshal(o.business))(o.t))
	for i := range o.shops {
		p := processes.Start(o.t, "shop", o.redis.Addr())
		p.Say(task)
		o.shops[i] = p
		go func() {
			for line, err := p.Line(); err == nil; line, err = p.Line() {
				var ended, answered int64
				fmt.Sscan(line, &ended, &answered)
				o.answered.Add(answered)
				o.ended.Add(ended)
			}
		}()
	}
}

// end ends all shops as an operator would.
func (o *outage) end() {
	o.t.Helper()
	for _, p := range o.shops {
		if err := p.End(); err != nil {
			o.t.Errorf("a shop ended with %v", err)
		}
	}
}

// queries returns how many queries have begun, ever.
func (o *outage) queries() (n int) {
	o.t.Helper()
	expect.OK(o.t, o.database.QueryRow(o.t.Context(), "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM queries").Scan(&n))
	return n
}

// absent returns how many keys Redis does not have. It is exact only while nothing is loaded.
func (o *outage) absent() int {
	o.t.Helper()
	return o.business.Keys - int(expect.Value(o.rdb.DBSize(o.t.Context()).Result())(o.t))
}

// round waits until a quarter of a second's Gets have ended, however long that takes, and returns the percentage that was answered.
func (o *outage) round() int {
	o.t.Helper()
	ended, answered := o.ended.Load(), o.answered.Load()
	expect.Eventually(o.t, "the shops are asked", func() bool { return o.ended.Load() >= ended+int64(asked/4) })
	return int(100 * (o.answered.Load() - answered) / (o.ended.Load() - ended))
}

// watch looks on for at most so many rounds, until four in a row are answered without a query. It returns the percentage of each round and
// whether it saw those four.
func (o *outage) watch(rounds int) (answered []int, well bool) {
	o.t.Helper()
	for last, good := o.queries(), 0; len(answered) < rounds; {
		answered = append(answered, o.round())
		now := o.queries()
		if good++; now != last || answered[len(answered)-1] < 99 {
			good = 0
		}
		if last = now; good == 4 {
			return answered, true
		}
	}
	return answered, false
}

// A real Redis, a real PostgreSQL of 200 queries a second, and processes that are asked 800 times a second: whatever happens to Redis or to
// them, all callers are answered again, and what Redis lost is queried about once.
func TestNoOutageBringsTheDatabaseDown(t *testing.T) {
	shops, keys := effort.Times(2, 5), effort.Times(capacity, 10*capacity)
	o := startOutage(t, shops, business{Keys: keys, RedisTimeout: 10 * time.Second}) // a busy machine is not what is tested
	lost := keys + keys/10                                                           // a tenth more than there are keys
	for _, x := range []struct {
		name    string
		happens func() (most int) // queries, or -1: as many as the database can do meanwhile
	}{
		{"cold start", func() int { return lost }},
		{"FLUSHALL", func() int {
			expect.OK(t, o.rdb.FlushAll(t.Context()).Err())
			return lost
		}},
		{"deploy", func() int {
			absent := o.absent()
			o.deploy()
			return absent
		}},
		{"deploy while Redis fills", func() int {
			before := o.queries()
			expect.OK(t, o.rdb.FlushAll(t.Context()).Err())
			expect.Eventually(t, "a third of the keys was queried", func() bool { return o.queries() >= before+keys/3 })
			o.deploy()
			return lost + connections // what the killed ones were doing
		}},
		{"failover to an empty node", func() int {
			o.redis.Stop()
			o.redis.Restart()
			return -1
		}},
		{"CLIENT PAUSE of 2 s", func() int {
			o.business.RedisTimeout = 0 // the default, as it is what ends the wait
			o.deploy()
			o.watch(100)
			expect.OK(t, o.rdb.ClientPause(t.Context(), 2*time.Second).Err())
			return -1
		}},
	} {
		before := o.queries()
		most := x.happens()
		answered, well := o.watch(12 * 4 * keys / capacity)
		queries := o.queries() - before
		t.Logf("%s: %d queries for %d keys; answered, in %% of a quarter of a second's gets: %v", x.name, queries, keys, answered)
		if !well {
			t.Errorf("%s: not all is well after twelve times as many gets as the database needs time for", x.name)
		}
		if most >= 0 && queries > most {
			t.Errorf("%s: %d queries, want at most %d", x.name, queries, most)
		}
		if absent := o.absent(); absent > keys/10 {
			t.Errorf("%s: Redis still lacks %d of %d keys", x.name, absent, keys)
		}
	}
	o.end()
}

// What the limit is for. The load is the same.
func TestWithoutALimitTheDatabaseStaysDown(t *testing.T) {
	if !effort.Long() {
		t.Skip("it takes its time: MAYFLY_LONG=1")
	}
	keys := 10 * capacity
	o := startOutage(t, 5, business{Keys: keys, RedisTimeout: 10 * time.Second, Limit: -1})
	answered, well := o.watch(3 * 4 * keys / capacity)
	t.Logf("no limit: %d queries for %d keys; answered, in %% of a quarter of a second's gets: %v", o.queries(), keys, answered)
	if late := answered[len(answered)/2:]; well || slices.Max(late) > 80 {
		t.Errorf("all is well without a limit: %v", answered)
	}
	o.end()
}
