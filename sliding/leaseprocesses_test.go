package sliding_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/sliding"
)

func init() { processes.Roles["lessee"] = lessee }

const (
	lesseeWindow, lesseeLease = time.Second, 50 * time.Millisecond
	lesseeLimit               = 8000
)

// lessee asks as often as it can, and prints for each admitted call at once when it asked and got the answer, in microseconds, because it will be
// killed.
func lessee() int {
	rdb, ctx := processes.Dial(), context.Background()
	l := mayfly.Must(sliding.NewLimiter(calls(rdb, lesseeWindow), sliding.LimiterOptions{Limit: lesseeLimit, RedisTimeout: patient, Strict: true, Lease: lesseeLease}))
	for range 2 {
		go func() {
			for i := 0; ; i++ {
				asked := time.Now()
				d, err := l.Allow(ctx, "hot", 1)
				if err != nil {
					fmt.Fprintln(os.Stderr, "lessee:", err)
				}
				if d.Allowed {
					fmt.Println(asked.UnixMicro(), time.Now().UnixMicro())
				}
				if i%4 == 3 {
					<-time.After(500 * time.Microsecond)
				}
			}
		}()
	}
	select {}
}

// Processes that lease shares of one limit, and are killed with kill -9 while they use them, together never get more than the limit. They take no
// more than their shares with them: the others get the rest.
func TestProcessesThatLeaseAreKilled(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	var mu sync.Mutex
	var log []admission
	var reading sync.WaitGroup
	start := func() *processes.Process {
		p := processes.Start(t, "lessee", srv.Addr())
		reading.Go(func() {
			for {
				line, err := p.Line()
				var asked, answered int64
				if n, _ := fmt.Sscan(line, &asked, &answered); err != nil || n != 2 {
					return
				}
				mu.Lock()
				log = append(log, admission{time.Duration(asked) * time.Microsecond, time.Duration(answered) * time.Microsecond, 0, 1})
				mu.Unlock()
			}
		})
		return p
	}
	var all []*processes.Process
	for range 4 {
		all = append(all, start())
	}
	killed := 0
	for begun := time.Now(); time.Since(begun) < lasts; killed++ {
		<-time.After(250 * time.Millisecond)
		i := killed % len(all)
		if err := all[i].Cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		all[i].Cmd.Wait()
		all[i] = start()
	}
	for _, p := range all {
		p.Cmd.Process.Kill()
		p.Cmd.Wait()
	}
	reading.Wait()
	most := within(log, lesseeWindow)
	t.Logf("%d admitted, %d killed, at most %d in a window's length, the limit is %d", len(log), killed, most, lesseeLimit)
	if most > lesseeLimit {
		t.Errorf("%d were admitted in a window's length, the limit is %d", most, lesseeLimit)
	}
	if len(log) < 100 || killed < 8 {
		t.Error("the run is void")
	}
}
