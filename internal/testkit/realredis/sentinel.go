package realredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Sentinel is a master with its replicas, watched by three sentinels. The methods of its nodes break it; a master that is killed or paused
// is failed over.
type Sentinel struct {
	t         testing.TB
	nodes     []*Server
	sentinels []watcher
}

// A watcher is one sentinel, with a client for commands of our own.
type watcher struct {
	*Server
	rdb *redis.SentinelClient
}

// masterName is the sentinels' name for the master.
const masterName = "mayfly"

// StartSentinel starts a master with replicas (at least one) and three sentinels, and returns when each of them knows all others.
func StartSentinel(t testing.TB, replicas int, o Options) *Sentinel {
	t.Helper()
	if replicas < 1 {
		t.Fatalf("realredis: StartSentinel needs at least 1 replica, got %d", replicas)
	}
	b := need(t, o.Flavour)
	s := &Sentinel{t: t}
	master := prepare(t, b, o.Config...)
	s.nodes = append(s.nodes, master)
	startAll(t, master)
	for range replicas {
		config := append([]string{fmt.Sprintf("replicaof 127.0.0.1 %d", master.port)}, o.Config...)
		s.nodes = append(s.nodes, prepare(t, b, config...))
	}
	startAll(t, s.nodes[1:]...)

	must(t, until(func(ctx context.Context) error { return s.replicated(ctx, master) })) // otherwise the sentinels see the replicas only at their next look, in 10 s

	var watchers []*Server
	for range 3 {
		w := prepare(t, b)
		w.mode = []string{"--sentinel"}
		w.config = []string{ // in place of a server's lines, which a sentinel refuses
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", masterName, master.port),
			"sentinel down-after-milliseconds " + masterName + " 1000",
			"sentinel failover-timeout " + masterName + " 5000",
		}
		watchers = append(watchers, w)
	}
	startAll(t, watchers...)
	for _, w := range watchers {
		rdb := redis.NewSentinelClient(w.adminOptions())
		t.Cleanup(func() { rdb.Close() })
		s.sentinels = append(s.sentinels, watcher{w, rdb})
		must(t, s.sentinels[len(s.sentinels)-1].tune(200*time.Millisecond))
	}
	must(t, until(func(ctx context.Context) error { return s.agreed(ctx, master, replicas) }))
	// Once they have met, they go back to their normal period, which also decides whom they trust: after 3 periods of silence a replica is no
	// candidate, and one that has been a master for 4 periods without a known failover is turned back.
	for _, w := range s.sentinels {
		must(t, w.tune(time.Second))
	}
	return s
}

// tune sets how often a sentinel looks and tells; by default it does some things every second, some every 10 s. After a stall on a busy
// machine it mistrusts its clock for 1 s instead of 30.
func (w watcher) tune(period time.Duration) error {
	ms := period.Milliseconds()
	return w.admin().Do(context.Background(), "SENTINEL", "DEBUG", "PING-PERIOD", ms, "ASK-PERIOD", ms, "PUBLISH-PERIOD", ms, "INFO-PERIOD", ms,
		"TILT-PERIOD", 1000).Err()
}

// replicated returns what is wrong with the nodes that are up: master must be one, and the others in step with one.
func (s *Sentinel) replicated(ctx context.Context, master *Server) error {
	for _, node := range s.nodes {
		if !node.up() {
			continue
		}
		info, err := node.admin().Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		want := "master_link_status:up"
		if node == master {
			want = "role:master"
		}
		if !strings.Contains(info, want) {
			return fmt.Errorf("%s is not %s: %s", node.Addr(), want, info)
		}
	}
	return nil
}

// agreed returns what the sentinels that are up do not know yet: the master, this many replicas that could take over, and each other.
func (s *Sentinel) agreed(ctx context.Context, master *Server, replicas int) error {
	for _, w := range s.sentinels {
		if !w.up() {
			continue
		}
		m, err := w.rdb.Master(ctx, masterName).Result()
		if err != nil {
			return err
		}
		if got := net.JoinHostPort(m["ip"], m["port"]); got != master.Addr() || m["flags"] != "master" {
			return fmt.Errorf("sentinel %s takes %s for the master (%s)", w.Addr(), got, m["flags"])
		}
		if n := len(s.sentinels) - 1; m["num-other-sentinels"] != fmt.Sprint(n) {
			return fmt.Errorf("sentinel %s knows %s of %d others", w.Addr(), m["num-other-sentinels"], n)
		}
		known, err := w.rdb.Replicas(ctx, masterName).Result()
		if err != nil {
			return err
		}
		able := 0
		for _, r := range known {
			if r["flags"] == "slave" && r["master-link-status"] == "ok" {
				able++
			}
		}
		if able < replicas {
			return fmt.Errorf("sentinel %s knows %d of %d replicas", w.Addr(), able, replicas)
		}
	}
	return nil
}

// Options returns options for a go-redis failover client, for the caller to change.
func (s *Sentinel) Options() *redis.FailoverOptions {
	o := &redis.FailoverOptions{MasterName: masterName}
	for _, w := range s.sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, w.Addr())
	}
	return o
}

// Client returns a new client of the current master; it is closed at the end of the test.
func (s *Sentinel) Client() *redis.Client {
	rdb := redis.NewFailoverClient(s.Options())
	s.t.Cleanup(func() { rdb.Close() })
	return rdb
}

// Nodes returns the first master and its replicas.
func (s *Sentinel) Nodes() []*Server { return slices.Clone(s.nodes) }

// Sentinels returns the three sentinels.
func (s *Sentinel) Sentinels() []*Server {
	var servers []*Server
	for _, w := range s.sentinels {
		servers = append(servers, w.Server)
	}
	return servers
}

// Master returns the master according to the first sentinel that is up.
func (s *Sentinel) Master() *Server {
	s.t.Helper()
	master, err := s.master(context.Background())
	must(s.t, err)
	return master
}

func (s *Sentinel) master(ctx context.Context) (*Server, error) {
	w, err := s.anyUp()
	if err != nil {
		return nil, err
	}
	addr, err := w.rdb.GetMasterAddrByName(ctx, masterName).Result()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.nodes, func(node *Server) bool { return node.Addr() == net.JoinHostPort(addr[0], addr[1]) })
	if i < 0 {
		return nil, fmt.Errorf("the sentinels' master %v is none of the nodes", addr)
	}
	return s.nodes[i], nil
}

// anyUp returns a sentinel that is up.
func (s *Sentinel) anyUp() (watcher, error) {
	i := slices.IndexFunc(s.sentinels, func(w watcher) bool { return w.up() })
	if i < 0 {
		return watcher{}, errors.New("no sentinel is up")
	}
	return s.sentinels[i], nil
}

// Failover makes a replica take over from the master, and returns the new master once it is settled.
func (s *Sentinel) Failover() *Server {
	s.t.Helper()
	old, err := s.master(context.Background())
	must(s.t, err)
	w, err := s.anyUp()
	must(s.t, err)
	// The request is repeated: it is refused while a failover is in progress or while no replica has been heard of lately, and given up for
	// the same reason.
	return s.settle(func(ctx context.Context, master *Server) error {
		if master != old {
			return nil
		}
		err := w.rdb.Failover(ctx, masterName).Err()
		return fmt.Errorf("the master is still %s (SENTINEL FAILOVER: %v)", old.Addr(), err)
	})
}

// Settle returns the master once the sentinels that are up agree on one that is up, and its replicas are in step: after the master was killed
// or paused, when one of its replicas has taken over.
func (s *Sentinel) Settle() *Server {
	s.t.Helper()
	return s.settle(func(context.Context, *Server) error { return nil })
}

// settle waits for a master that accept accepts.
func (s *Sentinel) settle(accept func(ctx context.Context, master *Server) error) *Server {
	s.t.Helper()
	var master *Server
	must(s.t, until(func(ctx context.Context) (err error) {
		if master, err = s.master(ctx); err != nil {
			return err
		}
		if err = accept(ctx, master); err != nil {
			return err
		}
		if !master.up() {
			return fmt.Errorf("the master is still %s, which is down", master.Addr())
		}
		return errors.Join(s.agreed(ctx, master, 0), s.replicated(ctx, master))
	}))
	return master
}
