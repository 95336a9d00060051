package cacheaside_test

import (
	"context"
	"errors"
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
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

// Many more callers than connections get values that are all in Redis. They wait for one another, which is no failure of Redis: nobody asks the
// origin, the breaker stays closed, and Deletes come through.
func TestACrowdIsNoFailure(t *testing.T) {
	for name, crowd := range map[string]struct {
		callers int
		trip    time.Duration
	}{
		"1000 at 5 ms": {1000, 5 * time.Millisecond},
		"2000 at 2 ms": {2000, 2 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crowdIn(t, redistest.Start(t).Options(), crowd.callers, crowd.trip)
			})
		})
	}
	t.Run("2000 at 2 ms, on a real Redis", func(t *testing.T) {
		if effort.Race {
			t.Skip("a trip would take the budget")
		}
		o := realredis.Start(t, realredis.Options{}).Options()
		o.ContextTimeoutEnabled = true
		o.Dialer = new(net.Dialer).DialContext
		crowdIn(t, o, 2000, 2*time.Millisecond)
	})
}

func crowdIn(t *testing.T, o *redis.Options, callers int, trip time.Duration) {
	o.PoolSize = 20
	o.Dialer = far(o.Dialer, trip)
	rdb := redis.NewClient(o)
	defer rdb.Close()
	var events expect.Events
	ns := namespace(t, rdb)
	ns.Observer = &events
	var loads atomic.Int32
	load := func(_ context.Context, key int) (user, error) { loads.Add(1); return user{Version: key}, nil }
	c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
	const keys = 50
	for key := range keys {
		expect.OK(t, c.Set(t.Context(), key, user{Version: key}))
	}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := range effort.Times(2, 50) {
				key := (i + n) % keys
				if u, err := c.Get(t.Context(), key); u.Version != key || err != nil {
					t.Errorf("got %+v, %v", u, err)
				}
			}
		})
		if i%20 == 0 { // of keys that nobody reads
			wg.Go(func() {
				if err := c.Delete(t.Context(), 1000+i); err != nil {
					t.Errorf("Delete: %v", err)
				}
			})
		}
	}
	wg.Wait()
	if n := loads.Load(); n != 0 {
		t.Errorf("%d loads", n)
	}
	if n := events.Count(mayfly.KindBreaker, mayfly.OutcomeFailed); n != 0 {
		t.Errorf("the breaker opened %d times", n)
	}
	if n := events.Count(mayfly.KindBackend, mayfly.OutcomeFailed) + events.Count(mayfly.KindBackend, mayfly.OutcomeTimedOut); n != 0 {
		t.Errorf("%d times Redis could not be asked", n)
	}
	waited, longest := 0, time.Duration(0)
	for _, e := range events.All() {
		if e.Kind == mayfly.KindQueue {
			waited, longest = waited+e.N, max(longest, e.Took)
		}
	}
	if waited < callers/2 {
		t.Errorf("%d waits were told, of %d callers", waited, callers)
	}
	t.Logf("%d waits, the longest %v", waited, longest)
}

// far returns a dialer of connections on which a request takes the given time to arrive.
func far(dial func(ctx context.Context, network, addr string) (net.Conn, error), trip time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		near, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		c := &farConn{Conn: near, trip: trip, sent: make(chan sent, 1024), closed: make(chan struct{})}
		go c.carry()
		return c, nil
	}
}

// farConn delays what is written.
type farConn struct {
	net.Conn
	trip   time.Duration
	sent   chan sent
	once   sync.Once
	closed chan struct{}
}

type sent struct {
	bytes   []byte
	arrives time.Time
}

func (c *farConn) Write(b []byte) (int, error) {
	select {
	case c.sent <- sent{append([]byte(nil), b...), time.Now().Add(c.trip)}:
		return len(b), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *farConn) SetWriteDeadline(time.Time) error { return nil } // it would end a write under way

func (c *farConn) carry() {
	for {
		select {
		case s := <-c.sent:
			select {
			case <-time.After(time.Until(s.arrives)):
			case <-c.closed:
				return
			}
			if _, err := c.Conn.Write(s.bytes); errors.Is(err, net.ErrClosed) {
				return
			}
		case <-c.closed:
			return
		}
	}
}

func (c *farConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
