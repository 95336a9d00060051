package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/sliding"
)

// The worlds: solo is emptied, restarted and short of memory, and has caches only; cluster is failed over, and its slots move.
const (
	solo    = "solo"
	cluster = "cluster"
)

// wayTo is the variable that names to a worker its proxies: "server=proxy", comma by comma, that of solo first.
const wayTo, nameOf = "MAYFLY_CHAOS_PROXIES", "MAYFLY_CHAOS_NAME"

// wrong tells the parent what must not be.
func wrong(format string, args ...any) { fmt.Printf("wrong: "+format+"\n", args...) }

// worker works until its standard input ends, and then sees to it that nothing of it is left.
func worker() int {
	d, ctx := &truth{rdb: processes.Dial()}, context.Background()
	proxies := map[string]string{}
	var addrs []string
	for pair := range strings.SplitSeq(os.Getenv(wayTo), ",") {
		server, by, _ := strings.Cut(pair, "=")
		proxies[server] = by
		addrs = append(addrs, server)
	}
	open := func(addrs ...string) redis.UniversalClient {
		return mayfly.Must(mayfly.CacheClient(&redis.UniversalOptions{Addrs: addrs, IsClusterMode: len(addrs) > 1, MaxRetries: 3, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, network, proxies[addr])
		}}))
	}
	one, many := open(addrs[0]), open(addrs[1:]...)
	caches := []*cache{aside(solo, one, d), pages(solo, one, d), aside(cluster, many, d)}
	stores := []*sessions{sessionsOf(cluster, many, sliding.Options{}, "session"), sessionsOf(cluster, many, sliding.Options{MaxAge: time.Hour}, "aged")}

	working, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	most := time.Duration(effort.Times(120, 30)) * time.Millisecond // in a plain run other packages want the machine too
	pause := func() { <-time.After(rand.N(most)) }
	forever := func(times int, do func()) {
		for range times {
			all.Go(func() {
				for working.Err() == nil {
					do()
					pause()
				}
			})
		}
	}
	for _, c := range caches {
		forever(3, func() { c.read(ctx, d) })
		forever(1, func() { c.write(ctx, d) })
	}
	for _, s := range stores {
		all.Go(func() { s.own(working, ctx, d, os.Getenv(nameOf), pause) })
		forever(1, func() { s.read(ctx, d) })
	}
	forever(1, func() { d.flush(ctx); <-time.After(200 * time.Millisecond) })
	fmt.Println("at work")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); { // until it ends
	}
	stop()
	all.Wait()
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var err error
	for _, c := range caches {
		err = errors.Join(err, c.close(within))
	}
	if err = errors.Join(err, one.Close(), many.Close()); err != nil {
		wrong("closing: %v", err)
	}
	for _, owner := range []string{"mayfly/cacheaside.", "mayfly/httpcache.", "mayfly/internal/client/"} {
		var left []string
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
			if left = processes.Stacks(owner); len(left) == 0 {
				break
			}
		}
		if len(left) > 0 {
			wrong("goroutines are left of %s: %.2000q", owner, left)
		}
	}
	d.flush(ctx)
	fmt.Println("ended")
	return 0
}
