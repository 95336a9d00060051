package cacheaside_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/foreign"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

func plain(t testing.TB, rdb redis.UniversalClient) mayfly.Namespace[int, user] {
	ns := namespace(t, rdb)
	ns.Plain = true
	return ns
}

func plainValuesAreTheCodecsBytes(t *testing.T, rdb redis.UniversalClient) {
	ns, ctx := plain(t, rdb), t.Context()
	var loads atomic.Int32
	c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
		if n := rdb.Exists(ctx, ns.Prefix+strconv.Itoa(key)).Val(); n != 0 {
			t.Error("another program sees something while the value is loading")
		}
		return user{"loaded", int(loads.Add(1))}, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	key := ns.Prefix + "7"
	stored := func() string { return rdb.Get(ctx, key).Val() }
	c.Get(ctx, 7)
	if got := stored(); got != `{"Name":"loaded","Version":1}` || rdb.PTTL(ctx, key).Val() <= 0 {
		t.Errorf("stored %q", got)
	}
	c.Set(ctx, 7, user{"set", 2})
	if got := stored(); got != `{"Name":"set","Version":2}` {
		t.Errorf("stored %q", got)
	}
	rdb.Set(ctx, key, `{"Name":"foreign","Version":3}`, time.Minute)
	if u, err := c.Get(ctx, 7); u.Version != 3 || err != nil {
		t.Errorf("got %+v, %v", u, err)
	}
	if err := c.Delete(ctx, 7); err != nil || stored() != "" {
		t.Errorf("after Delete: %q, %v", stored(), err)
	}
}

// A value that another program wrote during our load is newer than ours.
func aPlainFillDoesNotOverwriteAnotherProgram(t *testing.T, rdb redis.UniversalClient) {
	ns, ctx := plain(t, rdb), t.Context()
	key := ns.Prefix + "7"
	c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
		rdb.Set(ctx, key, `{"Name":"foreign","Version":2}`, time.Minute)
		return user{"loaded", 1}, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	if u, err := c.Get(ctx, 7); u.Version != 1 || err != nil {
		t.Errorf("got %+v, %v", u, err)
	}
	if u, err := c.Get(ctx, 7); u.Version != 2 || err != nil {
		t.Errorf("got %+v, %v: the other program's value was overwritten", u, err)
	}
}

// A Python program with the guide's own functions and a Go program share keys: neither finds bytes that it cannot read.
func TestTheGuidesPythonOnTheSameKeys(t *testing.T) {
	program := foreign.Named(t, "MAYFLY_PYTHON_BIN", ".ci/python")
	srv := realredis.Start(t, realredis.Options{})
	_, port, _ := net.SplitHostPort(srv.Addr())
	python := exec.Command(program, "testdata/guide.py", port)
	python.Stderr = os.Stderr
	in, err := python.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := python.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := python.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { python.Process.Kill() })

	ns := mayfly.Namespace[int, user]{Name: "users", Redis: srv.Client(), Prefix: "cache:user:", TTL: time.Hour, Plain: true}
	var events expect.Events
	ns.Observer = &events
	var loads atomic.Int32
	c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
		loads.Add(1)
		<-time.After(rand.N(3 * time.Millisecond))
		return user{"Go's", key}, nil
	}, cacheaside.Options{Early: earlyrefresh.Linear(1), RedisTimeout: patient}))
	var reads atomic.Int32
	var wg sync.WaitGroup
	end, atLast := time.Now().Add(3*time.Second), time.Now().Add(2*time.Minute)
	met := func() bool { // Python may take its time to begin
		n, _ := srv.Client().Get(t.Context(), "reads of Python").Int()
		return n >= 100 && loads.Load() >= 100
	}
	for range 8 {
		wg.Go(func() {
			for n := 0; time.Now().Before(end) || n%100 != 0 || !met() && time.Now().Before(atLast); n++ {
				key := rand.N(50)
				if u, err := c.Get(t.Context(), key); u.Version != key || err != nil {
					t.Errorf("got %+v, %v", u, err)
				}
				reads.Add(1)
				if rand.N(10) == 0 {
					c.Delete(t.Context(), key)
				}
			}
		})
	}
	wg.Wait()
	in.Close()
	text, _ := io.ReadAll(out)
	if err := python.Wait(); err != nil {
		t.Errorf("Python: %v", err)
	}
	theirs, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	t.Logf("%d reads and %d loads by Go, %d reads by Python", reads.Load(), loads.Load(), theirs)
	if theirs < 100 || loads.Load() < 100 {
		t.Error("the two hardly met")
	}
	if n := events.Count(mayfly.KindBackend, mayfly.OutcomeFailed); n != 0 {
		t.Errorf("%d times Go met what it could not read", n)
	}
}

// The lease of a plain value is a key beside it. A waiter must look there; otherwise it would find nothing and try to claim the key again and
// again, without a pause.
func TestWaitersForAPlainValueAskGently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		loads := 0
		load := func(context.Context, int) (user, error) {
			loads++
			time.Sleep(time.Second)
			return user{Version: 1}, nil
		}
		a := must[int, user](t)(cacheaside.New(plain(t, srv.Client()), load, cacheaside.Options{}))
		b := must[int, user](t)(cacheaside.New(plain(t, srv.Client()), load, cacheaside.Options{}))
		var wg sync.WaitGroup
		for _, c := range []*cacheaside.Cache[int, user]{a, b} {
			wg.Go(func() {
				if u, err := c.Get(t.Context(), 7); u.Version != 1 || err != nil {
					t.Errorf("got %+v, %v", u, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if n := len(srv.Log()); n > 60 || loads != 1 {
			t.Errorf("%d commands while the other one loads, %d loads", n, loads)
		}
	})
}
