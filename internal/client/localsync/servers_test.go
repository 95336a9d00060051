package localsync_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

func (n *near) untilRung(r localsync.Rung) {
	n.t.Helper()
	expect.Eventually(n.t, fmt.Sprintf("the rung is %v", r), func() bool { return n.Stats().Rung == r && (r == localsync.Off || n.Trusted(n.Now())) })
}

// copied reads key until there is a copy of value: a change that is on its way may refuse the first.
func (n *near) copied(key, value string) {
	n.t.Helper()
	expect.Eventually(n.t, key+" is copied", func() bool { n.read(key); return n.get(key) == value })
}

// gone waits until there is no copy of key.
func (n *near) gone(key string) {
	n.t.Helper()
	expect.Eventually(n.t, "the copy of "+key+" is gone", func() bool { return n.get(key) == "" })
}

func TestRealServers(t *testing.T) {
	for _, c := range []struct {
		name string
		open func(t *testing.T) *redis.Options
		rung localsync.Rung
	}{
		{"redis 8", func(t *testing.T) *redis.Options { return realredis.Start(t, realredis.Options{}).Options() }, localsync.Tracking},
		{"redis 7.0", func(t *testing.T) *redis.Options {
			return realredis.Start(t, realredis.Options{Flavour: realredis.Redis7}).Options()
		}, localsync.Tracking},
		{"valkey", func(t *testing.T) *redis.Options {
			return realredis.Start(t, realredis.Options{Flavour: realredis.Valkey}).Options()
		}, localsync.Tracking},
		{"a client of RESP2, another database", func(t *testing.T) *redis.Options {
			o := realredis.Start(t, realredis.Options{}).Options()
			o.Protocol, o.DB = 2, 5
			return o
		}, localsync.Tracking},
		{"miniredis, which has no tracking", func(t *testing.T) *redis.Options {
			return &redis.Options{Addr: miniredis.RunT(t).Addr()}
		}, localsync.PubSub},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := c.open(t)
			rdb, other := redis.NewClient(o), redis.NewClient(o)
			t.Cleanup(func() { rdb.Close(); other.Close() })
			n, m := open(t, rdb, nil), open(t, other, nil)
			n.untilRung(c.rung)
			m.untilRung(c.rung)
			set(t, other, "a:1", "old")
			n.copied("a:1", "old")
			set(t, other, "a:1", "new")
			m.Changed("a:1") // tells, where the server does not
			n.gone("a:1")
			n.copied("a:1", "new")
		})
	}
}

func TestPermissions(t *testing.T) {
	for _, c := range []struct {
		name, rules string
		rung        localsync.Rung
	}{
		{"all that is needed", "~a:* ~b:* ~mayfly:* &mayfly:* +@read +@write +@connection +publish +subscribe +@transaction", localsync.Tracking},
		{"no CLIENT TRACKING", "~* &* +@all -client|tracking", localsync.PubSub},
		{"no key of ours", "~a:* &* +@all", localsync.PubSub},
		{"no channel", "~* resetchannels +@all", localsync.ShortTTL},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := realredis.Start(t, realredis.Options{})
			args := []any{"acl", "setuser", "reader", "reset", "on", ">secret"}
			for rule := range strings.FieldsSeq(c.rules) {
				args = append(args, rule)
			}
			if err := srv.Client().Do(t.Context(), args...).Err(); err != nil {
				t.Fatal(err)
			}
			o := srv.Options()
			o.Username, o.Password = "reader", "secret"
			rdb := redis.NewClient(o)
			t.Cleanup(func() { rdb.Close() })
			n := open(t, rdb, func(o *localsync.Options) { o.Silence = time.Minute })
			n.untilRung(c.rung)
		})
	}
}

func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := realredis.StartCluster(t, 3, 3, realredis.Options{})
	rdb, other := cluster.Client(), cluster.Client()
	n := open(t, rdb, nil)
	n.untilRung(localsync.Tracking)
	everyKeyIsHeard := func(value string) { heardOfAll(t, n, other, value) }
	everyKeyIsHeard("1")

	flushes := n.Stats().Flushes
	cluster.Owner("a:1").Kill()
	n.untilRung(localsync.Off)
	cluster.Settle()
	other.ReloadState(t.Context()) // by itself go-redis would go on asking the dead one for a while
	n.untilRung(localsync.Tracking)
	if n.Stats().Flushes == flushes {
		t.Error("a failover did not drop the copies")
	}
	everyKeyIsHeard("2")

	cluster.Failover("a:2") // both live on
	everyKeyIsHeard("3")
}

func TestSentinel(t *testing.T) {
	t.Parallel()
	group := realredis.StartSentinel(t, 2, realredis.Options{})
	rdb, other := group.Client(), group.Client()
	n := open(t, rdb, nil)
	n.untilRung(localsync.Tracking)
	heardOfAll(t, n, other, "1")

	group.Master().Pause() // it keeps its connections
	n.untilRung(localsync.Off)
	group.Settle()
	n.untilRung(localsync.Tracking)
	heardOfAll(t, n, other, "2")
}

// heardOfAll has other change many keys that n has copies of.
func heardOfAll(t *testing.T, n *near, other redis.UniversalClient, value string) {
	t.Helper()
	const keys = 50
	for i := range keys {
		key := fmt.Sprint("a:", i)
		takes(t, func() error { return other.Set(t.Context(), key, value, time.Minute).Err() })
		expect.Eventually(t, key+" is copied", func() bool {
			k := n.Begin(key)
			if v, err := n.rdb.Get(t.Context(), key).Result(); err == nil {
				n.insert(key, k, answer{v, time.Minute})
			}
			return n.get(key) == value
		})
	}
	for i := range keys {
		key := fmt.Sprint("a:", i)
		takes(t, func() error { return other.Del(t.Context(), key).Err() })
		n.gone(key)
	}
}

// takes writes until that works: a failover may be under way.
func takes(t *testing.T, write func() error) {
	t.Helper()
	var last error
	defer func() {
		if last != nil {
			t.Logf("the last write failed: %v", last)
		}
	}()
	expect.Eventually(t, "writes are taken", func() bool { last = write(); return last == nil })
}
