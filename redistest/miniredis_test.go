package redistest_test

import (
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/diff"
	"github.com/mayflycache/mayfly/redistest"
)

// migrated is the direct access compared by TestDirectAccessIsMiniredis. TestEveryMethodOfMiniredis covers the rest.
type migrated interface {
	FastForward(time.Duration)
	FlushAll()
	FlushDB()
	Select(int)
	SwapDB(i, j int) bool
	Copy(srcDB int, src string, destDB int, dest string) error
	Exists(string) bool
	Get(string) (string, error)
	Set(k, v string) error
	TTL(string) time.Duration
	SetTTL(string, time.Duration)
	Del(string) bool
	Type(string) string
	Keys() []string
	Incr(string, int) (int, error)
	IncrByFloat(string, float64) (float64, error)
	HGet(k, f string) string
	HSet(k string, fv ...string)
	HDel(k, f string)
	HKeys(string) ([]string, error)
	HIncr(k, f string, delta int) (int, error)
	HIncrByFloat(k, f string, delta float64) (float64, error)
	HExpire(key, field string, ttl time.Duration) bool
	HPersist(key, field string) bool
	HTTL(key, field string) time.Duration
	HSetEX(key string, ttl time.Duration, fv ...string)
	List(string) ([]string, error)
	Push(k string, v ...string) (int, error)
	Lpush(k, v string) (int, error)
	Lpop(string) (string, error)
	Pop(string) (string, error)
	SAdd(k string, elems ...string) (int, error)
	SMembers(string) ([]string, error)
	SIsMember(k, v string) (bool, error)
	SCard(string) (int, error)
	SRandMember(string) (string, error)
	SRem(k string, fields ...string) (int, error)
	ZAdd(k string, score float64, member string) (bool, error)
	ZMembers(string) ([]string, error)
	SortedSet(string) (map[string]float64, error)
	ZRem(k, member string) (bool, error)
	ZScore(k, member string) (float64, error)
	ZMScore(k string, members ...string) ([]float64, error)
	PfAdd(k string, elems ...string) (int, error)
	PfCount(keys ...string) (int, error)
	PfMerge(destKey string, sourceKeys ...string) error
	Publish(channel, message string) int
	PubSubChannels(pattern string) []string
	PubSubNumSub(channels ...string) map[string]int
	PubSubNumPat() int
	IsReadOnlyCommand(string) bool
	Dump() string
}

var (
	_ migrated                          = (*miniredis.Miniredis)(nil)
	_ migrated                          = (*redistest.Miniredis)(nil)
	_ func() (*redistest.Server, error) = redistest.Run
	_ func() *redistest.Server          = redistest.NewMiniRedis
	_ redistest.Tester                  = miniredis.Tester(nil)
	_ redistest.T                       = miniredis.T(nil)
)

// The names taken over from miniredis do what they do there. Only the identities of errors are each package's own.
func TestDirectAccessIsMiniredis(t *testing.T) {
	script := func(m migrated) (out []string) {
		say := func(v ...any) { out = append(out, fmt.Sprintf("%q", v)) }
		say(m.Set("s", "v"))
		say(m.Get("s"))
		say(m.Get("none"))
		say(m.Exists("s"), m.Exists("none"))
		m.HSet("h", "f", "1", "g", strings.Repeat("long ", 20))
		say(m.HGet("h", "f"), m.HGet("h", "none"), m.HGet("none", "f"), m.HGet("s", "f"))
		say(m.Get("h"))
		say(m.Set("h", "v"))
		say(m.Push("l", "a", "b"))
		say(m.Push("l"))
		say(m.Lpush("l", "z"))
		say(m.Push("s", "a"))
		say(m.Lpush("s", "a"))
		say(m.List("l"))
		say(m.List("none"))
		say(m.List("s"))
		say(m.TTL("s"), m.TTL("none"))
		m.SetTTL("s", time.Hour)
		say(m.TTL("s") > 59*time.Minute)
		m.FastForward(59 * time.Minute)
		say(m.TTL("s") <= time.Minute, m.Exists("s"))
		m.SetTTL("s", 0)
		say(m.TTL("s"))
		m.SetTTL("s", time.Second)
		m.FastForward(2 * time.Second)
		say(m.Exists("s"))
		say(m.Set("t", "1"))
		m.HSet("t", "f", "v")
		say(m.HGet("t", "f"))
		say(m.Keys())
		say(m.Dump())
		say(m.Del("t"), m.Del("t"))
		say(m.Incr("n", 5))
		say(m.Incr("n", -2))
		say(m.Incr("h", 1))
		say(m.IncrByFloat("n", 0.5))
		say(m.Type("n"), m.Type("none"), m.Type("h"))
		say(m.HIncr("hn", "f", 3))
		say(m.HIncrByFloat("hn", "f", 0.25))
		say(m.HKeys("h"))
		say(m.HKeys("none"))
		say(m.HKeys("n"))
		m.HDel("h", "f")
		say(m.HKeys("h"))
		m.HSetEX("he", time.Hour, "a", "1", "b", "2")
		say(m.HTTL("he", "a") > 59*time.Minute, m.HTTL("he", "none"), m.HPersist("he", "a"), m.HPersist("he", "a"), m.HTTL("he", "a"))
		say(m.HExpire("he", "a", time.Minute), m.HExpire("he", "none", time.Minute), m.HExpire("none", "a", time.Minute))
		say(m.Pop("l"))
		say(m.Lpop("l"))
		say(m.Pop("none"))
		say(m.Lpop("n"))
		say(m.SAdd("set", "b", "a", "a"))
		say(m.SAdd("set", "c"))
		say(m.SAdd("n", "c"))
		say(m.SMembers("set"))
		say(m.SMembers("none"))
		say(m.SIsMember("set", "a"))
		say(m.SIsMember("set", "z"))
		say(m.SIsMember("none", "z"))
		say(m.SCard("set"))
		say(m.SCard("none"))
		say(m.SRandMember("none"))
		say(m.SRem("set", "a", "b", "z"))
		say(m.SRandMember("set"))
		say(m.SRem("none", "a"))
		say(m.ZAdd("z", 2.5, "two"))
		say(m.ZAdd("z", 1, "one"))
		say(m.ZAdd("z", 1, "one"))
		say(m.ZAdd("n", 1, "one"))
		say(m.ZMembers("z"))
		say(m.ZMembers("none"))
		say(m.SortedSet("z"))
		say(m.ZScore("z", "two"))
		say(m.ZScore("z", "none"))
		say(m.ZScore("none", "none"))
		say(m.ZMScore("z", "one", "none", "two"))
		say(m.ZRem("z", "one"))
		say(m.ZRem("z", "one"))
		say(m.PfAdd("p", "a", "b"))
		say(m.PfAdd("p", "a"))
		say(m.PfMerge("q", "p"))
		say(m.PfCount("p"))
		say(m.PfCount("q"))
		say(m.Publish("c", "nobody"), m.PubSubChannels(""), m.PubSubNumSub("c"), m.PubSubNumPat())
		say(m.IsReadOnlyCommand("get"), m.IsReadOnlyCommand("set"))
		m.Select(3)
		say(m.Keys(), m.Exists("n"))
		say(m.Set("s", "three"))
		say(m.Copy(3, "s", 0, "copied"), m.Copy(3, "none", 0, "copied"))
		say(m.SwapDB(3, 4), m.Keys())
		m.Select(4)
		say(m.Keys())
		m.FlushDB()
		say(m.Keys())
		m.Select(0)
		say(m.Get("copied"))
		m.FlushAll()
		say(m.Keys(), m.Dump())
		return out
	}
	want, got := script(miniredis.RunT(t)), script(redistest.RunT(t))
	if d := diff.Of(want, got); d != "" {
		t.Error(d)
	}
}

func TestChecks(t *testing.T) {
	srv := redistest.RunT(t)
	srv.Set("s", "v")
	srv.Push("l", "a", "b")
	srv.CheckGet(t, "s", "v")
	srv.CheckList(t, "l", "a", "b")
	fails := &failures{}
	srv.CheckGet(fails, "s", "w")
	srv.CheckGet(fails, "none", "w")
	srv.CheckList(fails, "l", "a")
	srv.CheckList(fails, "s")
	if fails.n != 4 {
		t.Errorf("%d of 4 checks failed", fails.n)
	}
}

type failures struct{ n int }

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestRequireAuth(t *testing.T) {
	srv := redistest.RunT(t)
	srv.RequireAuth("secret")
	c := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Error(err)
	}
	if err := srv.Client().Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	srv.Set("k", "v") // bypassing the password
	srv.RequireAuth("")
	if err := c.Get(t.Context(), "k").Err(); err != nil {
		t.Error(err)
	}
}

func TestRunAndStartAddr(t *testing.T) {
	a, err := redistest.Run()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b := redistest.NewMiniRedis()
	if err := b.StartAddr(a.Addr()); err == nil {
		t.Error("two servers have one port")
	}
	a.Close()
	if err := b.StartAddr(a.Addr()); err != nil {
		t.Error(err)
	}
	defer b.Close()
	if b.Addr() != a.Addr() {
		t.Errorf("asked for %s, got %s", a.Addr(), b.Addr())
	}
}

// leftOut is what miniredis has and redistest deliberately lacks; docs/testing.md says why.
var leftOut = map[string]string{
	"Dial":          "has the signature of a dialer here",
	"Server":        "is the server of miniredis itself, for commands of one's own",
	"NewSubscriber": "subscribe with a client",
	"Stream":        "there are no streams",
	"XAdd":          "there are no streams",
}

// mutex are methods that both types of miniredis embed.
var mutex = map[string]bool{"Lock": true, "Unlock": true, "TryLock": true}

// One missing method breaks the build of a whole package. So every method of miniredis's types is here, with its signature, or in leftOut.
func TestEveryMethodOfMiniredis(t *testing.T) {
	for _, pair := range []struct{ theirs, ours reflect.Type }{
		{reflect.TypeFor[*miniredis.Miniredis](), reflect.TypeFor[*redistest.Miniredis]()},
		{reflect.TypeFor[*miniredis.RedisDB](), reflect.TypeFor[*redistest.RedisDB]()},
	} {
		for i := range pair.theirs.NumMethod() {
			want := pair.theirs.Method(i)
			got, ok := pair.ours.MethodByName(want.Name)
			if leftOut[want.Name] != "" || mutex[want.Name] {
				continue
			}
			if !ok {
				t.Errorf("%v has no %s", pair.ours, want.Name)
				continue
			}
			if a, b := signature(want), signature(got); a != b {
				t.Errorf("%v.%s is func%s, want func%s", pair.ours, want.Name, b, a)
			}
		}
	}
	page, err := os.ReadFile("../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range leftOut {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/testing.md does not say why there is no %s", name)
		}
	}
}

// signature is a method's parameters and results, without its receiver, by names that both packages have.
func signature(m reflect.Method) string {
	var b strings.Builder
	for i := 1; i < m.Type.NumIn(); i++ {
		fmt.Fprint(&b, m.Type.In(i), " ")
	}
	b.WriteString("->")
	for i := range m.Type.NumOut() {
		fmt.Fprint(&b, " ", m.Type.Out(i))
	}
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), "miniredis.", ""), "redistest.", "")
}

// A key lives through the millisecond of its deadline, but FastForward by its TTL ends it, as in miniredis.
func TestFastForwardByTheTTLEndsTheKey(t *testing.T) {
	srv := redistest.RunT(t)
	rdb := srv.Client()
	for i := range 50 {
		ttl := time.Duration(1+i) * time.Second
		rdb.Set(t.Context(), "k", "v", ttl)
		if srv.FastForward(ttl - 100*time.Millisecond); !srv.Exists("k") {
			t.Fatalf("%v: gone too early", ttl)
		}
		rdb.Set(t.Context(), "k", "v", ttl)
		if srv.FastForward(ttl); srv.Exists("k") {
			t.Fatalf("%v: alive", ttl)
		}
		end := time.Now().Add(1000 * time.Hour * time.Duration(1+i)).Truncate(time.Second)
		rdb.Set(t.Context(), "k", "v", 0)
		rdb.ExpireAt(t.Context(), "k", end)
		if srv.SetTime(end); srv.Exists("k") {
			t.Fatalf("alive at %v", end)
		}
	}
	rdb.Set(t.Context(), "k", "v", time.Hour)
	if srv.FastForward(math.MaxInt64); srv.Exists("k") {
		t.Error("alive after the longest duration there is")
	}
}

// As with miniredis, a cluster client finds one node with all slots; a server from Start says that it is not in a cluster.
func TestAClusterClientOfOneNode(t *testing.T) {
	for _, overTCP := range []bool{false, true} {
		srv := redistest.RunT(t)
		o := &redis.ClusterOptions{Addrs: []string{"127.0.0.1:6379"}, Dialer: srv.Dial}
		if overTCP {
			o = &redis.ClusterOptions{Addrs: []string{srv.Addr()}}
		}
		rdb := redis.NewClusterClient(o)
		defer rdb.Close()
		ctx := t.Context()
		for i := range 20 { // all over the slots
			if err := rdb.Set(ctx, fmt.Sprint("key:", i), i, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := srv.Client().MSet(ctx, "a", 1, "b", 2).Err(); err != nil { // in two slots
			t.Error(err)
		}
		if keys := srv.Keys(); len(keys) != 22 {
			t.Errorf("got %q", keys)
		}
	}
	strict := redistest.Start(t)
	if err := strict.Client().ClusterShards(t.Context()).Err(); err == nil || err.Error() != "ERR This instance has cluster support disabled" {
		t.Errorf("Start: %v", err)
	}
}

func TestRequireUserAuth(t *testing.T) {
	srv := redistest.RunT(t)
	srv.RequireUserAuth("ada", "secret")
	ctx := t.Context()
	for _, c := range []struct {
		user, password string
		want           string
	}{
		{"", "", "NOAUTH"}, {"", "secret", "ERR AUTH <password> called without"}, {"ada", "wrong", "WRONGPASS"}, {"bob", "secret", "WRONGPASS"}, {"ada", "secret", ""},
	} {
		rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: c.user, Password: c.password})
		defer rdb.Close()
		err := rdb.Set(ctx, "k", "v", time.Hour).Err()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q with %q: %v, want %s", c.user, c.password, err, c.want)
		}
	}
	if err := srv.Client().Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
	srv.RequireUserAuth("ada", "")
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	if err := rdb.Ping(ctx).Err(); err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	srv, err := redistest.RunTLS(certificate.TLS)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	o, err := redis.ParseURL(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	o.TLSConfig.InsecureSkipVerify = true
	for range 2 {
		rdb := redis.NewClient(o)
		if err := rdb.Set(t.Context(), "k", strings.Repeat("v", 100_000), time.Hour).Err(); err != nil {
			t.Error(err)
		}
		if got, err := rdb.Get(t.Context(), "k").Result(); len(got) != 100_000 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		rdb.Close()
		srv.Close()
		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	if err := redistest.NewMiniRedis().StartTLS(nil); err == nil {
		t.Error("no error without a certificate")
	}
	other := redistest.NewMiniRedis()
	if err := other.StartAddrTLS(srv.Addr(), certificate.TLS); err == nil {
		t.Error("two servers have one port")
	}
}

func TestDatabases(t *testing.T) {
	srv := redistest.RunT(t)
	srv.DB(2).Set("k", "two")
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), DB: 2})
	defer rdb.Close()
	if got := rdb.Get(t.Context(), "k").Val(); got != "two" || srv.Exists("k") {
		t.Errorf("got %q", got)
	}
	srv.CheckSet(&failures{}, "none")
	srv.SAdd("s", "b", "a")
	srv.CheckSet(t, "s", "a", "b")
	if n, all := srv.CurrentConnectionCount(), srv.TotalConnectionCount(); n != 1 || all != 1 || srv.CommandCount() == 0 {
		t.Errorf("%d connections of %d, %d commands", n, all, srv.CommandCount())
	}
}
