package chaos

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/proxy"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

const (
	workers = 4
	least   = 100 // calls of each kind, or the run shows nothing
)

// bad is a network in which a third of the SETs, which claims are, come late, and one request of thirty has another misfortune.
var bad = proxy.Odds{Delay: 0.01, Late: 0.005, CutBefore: 0.003, CutAfter: 0.005, DropReply: 0.001, Truncate: 0.002, DelayReply: 0.01,
	Of: map[string]proxy.Odds{"set": {Delay: 0.02, Late: 0.33, CutAfter: 0.03, DropReply: 0.005, DelayReply: 0.03}}}

// chaos is one run.
type chaos struct {
	t       *testing.T
	truth   *truth
	random  *rand.Rand
	solo    *realredis.Server
	cluster *realredis.Cluster
	many    *redis.ClusterClient
	addrs   string // of the truth
	all     []*one
	faults  map[string]int
	evicted int64
	keys    int // that were looked at, and have an end

	mu    sync.Mutex // guards the rest
	wrong []string
}

// one is a worker, and those that take its place when it is killed.
type one struct {
	*processes.Process
	name    string
	env     []string
	proxies []*proxy.Proxy
	ended   chan struct{} // it says no more
	said    string        // last; read once ended is closed

}

func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	s := effort.Seed(t, *seed)
	db := realredis.Start(t, realredis.Options{})
	c := &chaos{t: t, random: rand.New(rand.NewPCG(s, 0)), truth: &truth{rdb: db.Client()}, addrs: db.Addr(), faults: map[string]int{},
		solo:    realredis.Start(t, realredis.Options{Config: []string{"maxmemory-policy allkeys-lru"}}),
		cluster: realredis.StartCluster(t, 3, 3, realredis.Options{}),
	}
	c.many = c.cluster.Client()
	for n := range workers {
		c.employ(n, s)
	}
	c.play(map[string]func(){
		"a worker is killed":              c.kill,
		"a worker is stopped":             c.stop,
		"connections are cut":             c.cut,
		"FLUSHALL":                        c.flush,
		"a restart, empty":                c.restart,
		"evictions":                       c.evict,
		"a server hangs":                  c.hang,
		"a master hangs and is replaced":  c.replace,
		"a failover":                      c.failover,
		"a slot moves":                    c.migrate,
		"a master is killed":              c.crash,
		"FLUSHALL of the cluster's nodes": c.flushCluster,
	})
	for _, w := range c.all {
		w.Hush()
		<-w.ended
		if err := w.Cmd.Wait(); err != nil || w.said != "ended" {
			t.Errorf("worker %s ended with %v, after saying %q", w.name, err, w.said)
		}
	}
	c.endless()
	c.report()
}

// employ starts worker n behind proxies of its own, which go on when it is killed.
func (c *chaos) employ(n int, s uint64) {
	odds := bad
	odds.Most = *late
	w := &one{name: fmt.Sprint("worker ", n)}
	var way []string
	for i, addr := range append([]string{c.solo.Addr()}, c.cluster.Options().Addrs...) {
		p, err := proxy.Run(addr)
		expect.OK(c.t, err)
		c.t.Cleanup(p.Close)
		p.Random(s+uint64(1+100*n+i), odds)
		w.proxies = append(w.proxies, p)
		way = append(way, addr+"="+p.Addr())
	}
	w.env = []string{wayTo + "=" + strings.Join(way, ","), nameOf + "=" + w.name}
	c.start(w)
	c.all = append(c.all, w)
}

func (c *chaos) start(w *one) {
	w.Process, w.ended = processes.Start(c.t, "worker", c.addrs, w.env...), make(chan struct{})
	if line, err := w.Line(); err != nil || line != "at work" {
		c.t.Fatalf("%s said %q, %v", w.name, line, err)
	}
	p, ended := w.Process, w.ended
	go func() {
		defer close(ended)
		for {
			line, err := p.Line()
			if err != nil {
				return
			}
			w.said = line
			if strings.HasPrefix(line, "wrong: ") {
				c.mu.Lock()
				c.wrong = append(c.wrong, line)
				c.mu.Unlock()
			}
		}
	}()
}

// play makes faults, each kind once before any comes again, until the time is over and all have been.
func (c *chaos) play(faults map[string]func()) {
	names := slices.Sorted(maps.Keys(faults))
	begun, deck := time.Now(), []string(nil)
	for time.Since(begun) < length() || len(c.faults) < len(faults) {
		if len(deck) == 0 {
			deck = slices.Clone(names)
			c.random.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		name := deck[0]
		deck = deck[1:]
		faults[name]()
		c.faults[name]++
		c.pause(300 * time.Millisecond)
		c.endless()
		c.mu.Lock()
		broken := len(c.wrong) > 0
		c.mu.Unlock()
		if broken {
			c.t.Logf("the last fault was: %s", name)
			return
		}
	}
}

// pause lets workers work, for about d.
func (c *chaos) pause(d time.Duration) { <-time.After(d/2 + time.Duration(c.random.Int64N(int64(d)))) }

func (c *chaos) any() *one { return c.all[c.random.IntN(len(c.all))] }

func (c *chaos) key() string { return fmt.Sprint("cache:", c.random.IntN(rows)) }

func (c *chaos) kill() {
	w := c.any()
	w.Cmd.Process.Kill()
	<-w.ended
	w.Cmd.Wait()
	c.pause(100 * time.Millisecond)
	c.start(w)
}

func (c *chaos) signal(w *one, name string) {
	expect.OK(c.t, exec.Command("sh", "-c", fmt.Sprintf("kill -%s %d", name, w.Cmd.Process.Pid)).Run())
}

// stop stops a worker for longer than a lease lives, or not.
func (c *chaos) stop() {
	w := c.any()
	c.signal(w, "STOP")
	c.pause(1200 * time.Millisecond)
	c.signal(w, "CONT")
}

func (c *chaos) cut() {
	for _, p := range c.any().proxies {
		p.Cut()
	}
}

func (c *chaos) flush() {
	expect.OK(c.t, c.solo.Client().FlushAll(c.t.Context()).Err())
}

func (c *chaos) restart() {
	c.countEvicted()
	c.solo.Restart()
}

// hang has a server answer nothing for a while. What it was sent meanwhile it does then, whoever has given up on it.
func (c *chaos) hang() {
	c.solo.Pause()
	c.pause(time.Second)
	c.solo.Resume()
}

// evict leaves less memory than caches fill, for a while.
func (c *chaos) evict() {
	rdb := c.solo.Client()
	used := stat(c.t, rdb, "memory", "used_memory")
	expect.OK(c.t, rdb.ConfigSet(c.t.Context(), "maxmemory", fmt.Sprint(used-10_000)).Err())
	c.pause(600 * time.Millisecond)
	expect.OK(c.t, rdb.ConfigSet(c.t.Context(), "maxmemory", "0").Err())
}

func (c *chaos) countEvicted() {
	c.evicted += stat(c.t, c.solo.Client(), "stats", "evicted_keys")
}

// stat reads a number of INFO.
func stat(t *testing.T, rdb *redis.Client, section, name string) (n int64) {
	t.Helper()
	info, err := rdb.Info(t.Context(), section).Result()
	expect.OK(t, err)
	_, after, _ := strings.Cut(info, name+":")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatalf("INFO %s has no %s: %v", section, name, err)
	}
	return n
}

// failover is one that the master consents to: nothing is lost.
func (c *chaos) failover() { c.cluster.Failover(c.key()) }

func (c *chaos) migrate() { c.cluster.Migrate(c.key()) }

// losing does what loses data of the cluster, and lets the time pass in which that can be seen.
func (c *chaos) losing(what func()) {
	c.truth.turn(c.t.Context(), cluster)
	what()
	<-time.After(life + 200*time.Millisecond)
	c.truth.turn(c.t.Context(), cluster)
}

// crash kills a master. What it had not yet sent to its replica is lost.
func (c *chaos) crash() {
	c.losing(func() {
		key := c.key()
		old := c.cluster.Owner(key)
		old.Kill()
		c.cluster.Failover(key)
		old.Restart()
		c.cluster.Settle()
	})
}

// replace has a replica take over from a master that hangs, which for a moment goes on where it was.
func (c *chaos) replace() {
	c.losing(func() {
		key := c.key()
		old := c.cluster.Owner(key)
		old.Pause()
		c.cluster.Failover(key)
		c.pause(500 * time.Millisecond)
		old.Resume()
		c.cluster.Settle()
	})
}

func (c *chaos) flushCluster() {
	c.losing(func() {
		expect.OK(c.t, c.many.ForEachMaster(c.t.Context(), func(ctx context.Context, node *redis.Client) error { return node.FlushAll(ctx).Err() }))
	})
}

// endless fails the test if there is a key without an end on any server that is not a replica.
func (c *chaos) endless() {
	c.t.Helper()
	for _, server := range append(c.cluster.Nodes(), c.solo) {
		rdb := redis.NewClient(server.Options())
		defer rdb.Close()
		info, err := rdb.Info(c.t.Context(), "replication").Result()
		expect.OK(c.t, err)
		if !strings.Contains(info, "role:master") {
			continue
		}
		it := rdb.Scan(c.t.Context(), 0, "", 1000).Iterator()
		for ; it.Next(c.t.Context()); c.keys++ {
			if left, err := rdb.PTTL(c.t.Context(), it.Val()).Result(); err != nil || left == -1 {
				c.t.Errorf("%s has no end (%v)", it.Val(), err)
			}
		}
		expect.OK(c.t, it.Err())
	}
}

func (c *chaos) report() {
	c.countEvicted()
	total := c.truth.total(c.t.Context())
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(c.faults)) {
		lines = append(lines, fmt.Sprintf("%4d times: %s", c.faults[name], name))
	}
	lines = append(lines, fmt.Sprintf("%4d keys were evicted", c.evicted), fmt.Sprintf("%4d times a key was seen to have an end", c.keys))
	for _, name := range slices.Sorted(maps.Keys(total)) {
		lines = append(lines, fmt.Sprintf("%7d %s", total[name], name))
	}
	c.t.Logf("what happened:\n\t%s", strings.Join(lines, "\n\t"))
	for i, w := range c.wrong {
		if i < 10 {
			c.t.Error(w)
		}
	}
	for _, name := range []string{"cacheaside reads", "httpcache reads", "sliding reads", "sliding writes", "cacheaside deletions", "httpcache deletions"} {
		if total[name] < least && len(c.wrong) == 0 {
			c.t.Errorf("%d %s: this shows nothing", total[name], name)
		}
	}
}
