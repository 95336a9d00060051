package fieldttl_test

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
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/internal/realredis"
)

// A process that is killed while it sets leaves no key without an end, and no field without the end of its tag.
func TestAProcessThatIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	srv := realredis.Start(t, realredis.Options{})
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 20 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "MAYFLY_TEST_REDIS="+srv.Addr(), fmt.Sprint("MAYFLY_TEST_APART=", round%2))
		cmd.Stderr = os.Stderr
		out := must(cmd.StdoutPipe())(t)
		ok(t, cmd.Start())
		if !bufio.NewScanner(out).Scan() { // it has begun to set
			t.Error("the process said nothing")
		}
		<-time.After(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
		ok(t, cmd.Process.Kill())
		cmd.Wait()
	}
	rdb, ctx := srv.Client(), t.Context()
	keys := 0
	for scan := rdb.Scan(ctx, 0, "", 1000).Iterator(); scan.Next(ctx); keys++ {
		if left := rdb.PTTL(ctx, scan.Val()).Val(); left < 0 {
			t.Errorf("%s has no end", scan.Val())
		}
		for i, left := range must(rdb.HPTTL(ctx, scan.Val(), "ip", "csrf_token").Result())(t) {
			if left == -1 {
				t.Errorf("field %d of %s has no end", i, scan.Val())
			}
		}
	}
	t.Logf("%d keys", keys)
	if keys < 100 {
		t.Errorf("only %d keys were written: this shows nothing", keys)
	}
}

// setForever is the process: it begins new hashes, whole and in part, all the time.
func setForever(addr string) {
	rdb, ctx := redis.NewClient(&redis.Options{Addr: addr}), context.Background()
	s := mayfly.Must(fieldttl.New(mayfly.Namespace[uint64, session]{Name: "sessions", Redis: rdb, Prefix: "s:", TTL: time.Hour}))
	if os.Getenv("MAYFLY_TEST_APART") == "1" {
		s.Apart()
	}
	for range 4 {
		go func() {
			for {
				key := rand.Uint64()
				s.Set(ctx, key, ada)
				s.SetFields(ctx, key+1, ada, "csrf_token", "user_id")
			}
		}()
	}
	s.Set(ctx, 0, ada)
	fmt.Println("setting")
	select {}
}
