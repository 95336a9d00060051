package cacheaside_test

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// network is between a client and its server: it counts new connections and what is written to them, and breaks.
type network struct {
	srv           *redistest.Server
	dials, writes atomic.Int64
	lost, silent  atomic.Pointer[chan struct{}] // closed when the network is whole again
}

func (n *network) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.dials.Add(1)
	if n.lost.Load() != nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	whole := n.silent.Load()
	if whole == nil {
		c, err := n.srv.Dial(ctx, network, addr)
		return counting{c, n}, err
	}
	client, server := net.Pipe()
	go func() {
		<-*whole
		upstream, err := n.srv.Dial(context.Background(), network, addr)
		if err != nil {
			server.Close()
			return
		}
		go func() { io.Copy(upstream, server); upstream.Close() }()
		io.Copy(server, upstream)
		server.Close()
	}()
	return counting{client, n}, nil
}

type counting struct {
	net.Conn
	n *network
}

func (c counting) Write(b []byte) (int, error) {
	c.n.writes.Add(1)
	return c.Conn.Write(b)
}

// ways are how a Redis can be gone, and come back.
var ways = []struct {
	name       string
	gone, back func(n *network)
}{
	{"closed", func(n *network) { n.srv.Refuse(true); n.srv.KillConnections() }, func(n *network) { n.srv.Refuse(false) }},
	{"hung", func(n *network) { n.srv.Hang() }, func(n *network) { n.srv.Thaw() }},
	{"never accepting", func(n *network) { c := make(chan struct{}); n.silent.Store(&c); n.srv.KillConnections() },
		func(n *network) { close(*n.silent.Swap(nil)) }},
	{"unreachable", func(n *network) { c := make(chan struct{}); n.lost.Store(&c); n.srv.KillConnections() },
		func(n *network) { n.lost.Store(nil) }},
}

// settings are the clients' own: go-redis's defaults would let a call wait for 2, 20 and 100 seconds.
var settings = []struct {
	name string
	set  func(o *redis.Options)
}{
	{"go-redis's defaults", func(o *redis.Options) { o.ContextTimeoutEnabled = false }},
	{"ContextTimeoutEnabled", func(o *redis.Options) {}},
	{"no deadlines", func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -2, -2 }},
	{"CacheClient", func(o *redis.Options) {
		rdb := mayfly.Must(mayfly.CacheClient(&redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: o.Dialer, MaintNotificationsConfig: o.MaintNotificationsConfig}))
		*o = *rdb.(*redis.Client).Options()
		rdb.Close()
	}},
}

// However Redis is gone and whatever the client's settings are, all callers wait for RedisTimeout and the loader, and no longer. Then Redis gets
// nothing but a probe each half second, and when it is back it is used within a second.
func TestRedisIsGoneInTime(t *testing.T) {
	for _, way := range ways {
		for i, client := range settings {
			later := time.Duration(i) * 450 * time.Millisecond // so that it is back at another moment between two probes
			t.Run(way.name+", "+client.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { isGone(t, way.gone, way.back, later, client.set) })
			})
		}
	}
}

func isGone(t *testing.T, gone, back func(*network), later time.Duration, set func(o *redis.Options)) {
	const takes = time.Millisecond
	callers, atOnce := effort.Times(75, 200), effort.Times(24, 64)
	srv := redistest.Start(t)
	wire := &network{srv: srv}
	o := srv.Options()
	o.Dialer = wire.Dial
	set(o)
	o.PoolSize = 1000  // as in every bubble
	o.MaxIdleConns = 1 // with TCP it would notice broken connections before using them
	rdb := redis.NewClient(o)
	defer func() { rdb.Close(); time.Sleep(time.Minute) }() // go-redis dials on in the background
	var events expect.Events
	ns := namespace(t, rdb)
	ns.TTL, ns.Observer = time.Hour, &events
	var running, most atomic.Int32
	c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		time.Sleep(takes)
		return user{Version: key}, nil
	}, cacheaside.Options{LoadLimit: atOnce}))
	worst := func() (worst time.Duration) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				begun := time.Now()
				if u, err := c.Get(t.Context(), i); u.Version != i || err != nil {
					t.Errorf("got %+v, %v", u, err)
				}
				mu.Lock()
				defer mu.Unlock()
				worst = max(worst, time.Since(begun))
			})
		}
		wg.Wait()
		return worst
	}
	worst()
	most.Store(0)
	gone(wire)
	bound := 150*time.Millisecond + time.Duration((callers+atOnce-1)/atOnce)*takes
	if took := worst(); took > bound {
		t.Errorf("Redis is gone, a call took %v, want at most %v", took, bound)
	}
	for range 3 { // some of whose calls are the first on a connection that is still in the pool
		time.Sleep(10 * time.Millisecond)
		worst()
	}
	if n := events.Count(mayfly.KindBreaker, mayfly.OutcomeFailed); n != 1 {
		t.Errorf("the breaker opened %d times", n)
	}
	if n := int(most.Load()); n > atOnce {
		t.Errorf("%d loads at once", n)
	}
	if _, _, err := c.Lookup(t.Context(), 1); err == nil {
		t.Error("Lookup takes a Redis that is gone for an absent key")
	}
	if err := c.Set(t.Context(), 1, user{Version: 1}); err == nil {
		t.Error("Set succeeded")
	}

	// Some five probes, or twenty. A CacheClient makes at most two attempts for each, as a probe may take longer than a call; other clients make as
	// many as go-redis does.
	events.Forget()
	asking := time.Now()
	wire.dials.Store(0)
	wire.writes.Store(0)
	for range effort.Times(150, 500) {
		time.Sleep(10 * time.Millisecond)
		begun := time.Now()
		if u, err := c.Get(t.Context(), 7); u.Version != 7 || err != nil || time.Since(begun) > takes { // no call waits for the probe
			t.Errorf("got %+v, %v after %v", u, err, time.Since(begun))
		}
	}
	probes := int64(time.Since(asking)/(500*time.Millisecond)) + 1
	t.Logf("%d connections begun and %d writes, in time for %d probes", wire.dials.Load(), wire.writes.Load(), probes)
	if o.MaxRetries == -1 && wire.dials.Load() > 2*probes {
		t.Error("more than two attempts for each probe")
	}

	time.Sleep(later)
	back(wire)
	begun := time.Now()
	for events.Count(mayfly.KindRead, mayfly.OutcomeHitRedis) == 0 {
		time.Sleep(10 * time.Millisecond)
		c.Get(t.Context(), 7)
	}
	if took := time.Since(begun); took > time.Second {
		t.Errorf("Redis is used again after %v", took)
	}
}
