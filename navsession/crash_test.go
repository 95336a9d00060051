package navsession_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/realredis"
	"github.com/mayflycache/mayfly/navsession"
)

// A process that is killed while it records leaves no key without an end.
func TestAProcessThatIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	srv := realredis.Start(t, realredis.Options{})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "MAYFLY_TEST_REDIS="+srv.Addr())
		cmd.Stderr = os.Stderr
		out := must(cmd.StdoutPipe())(t)
		ok(t, cmd.Start())
		if !bufio.NewScanner(out).Scan() { // it has begun to record
			t.Error("the process said nothing")
		}
		<-time.After(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
		ok(t, cmd.Process.Kill())
		cmd.Wait()
	}
	rdb := srv.Client()
	keys := 0
	for scan := rdb.Scan(t.Context(), 0, "", 1000).Iterator(); scan.Next(t.Context()); keys++ {
		if left := rdb.PTTL(t.Context(), scan.Val()).Val(); left == -1 {
			t.Errorf("%s has no end", scan.Val())
		}
	}
	t.Logf("%d keys", keys)
	if keys < 100 {
		t.Errorf("only %d keys were written: this shows nothing", keys)
	}
}

// recordForever is the process: it begins new visits of all kinds all the time.
func recordForever(addr string) {
	rdb, ctx := redis.NewClient(&redis.Options{Addr: addr}), context.Background()
	v := mayfly.Must(navsession.New(mayfly.Namespace[uint64, string]{Name: "visits", Redis: rdb, Prefix: "v:", TTL: time.Hour}, navsession.Options{Pages: 2}))
	c := mayfly.Must(navsession.NewCounter(mayfly.Namespace[uint64, int64]{Name: "counters", Redis: rdb, Prefix: "c:", TTL: time.Hour}))
	r := mayfly.Must(navsession.NewRelated(mayfly.Namespace[uint64, uint64]{Name: "related", Redis: rdb, Prefix: "r:", TTL: time.Hour}, navsession.RelatedOptions{}))
	for n := range 4 {
		go func() {
			for {
				user := rand.Uint64()
				v.Record(ctx, user, "/")
				c.Record(ctx, user)
				r.Count(ctx, user, user+1, user+2)
			}
		}()
		if n == 0 {
			v.Record(ctx, 0, "/")
			fmt.Println("recording")
		}
	}
	select {}
}
