package realredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A Sentinel is a master with its replicas, watched by three sentinels. The methods of its nodes break it; a master that
// is killed or paused is failed over.
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

// masterName is what the sentinels call the one they watch.
const masterName = "mayfly"

// StartSentinel starts a master with replicas (at least one) and three sentinels, and returns when each of them knows all
// others.
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

	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	must(s.t, until(ctx, func() error { return s.replicated(ctx) })) // or the sentinels see replicas with their next look, in 10 s

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
		must(s.t, hurry(ctx, w))
	}
	must(s.t, until(ctx, func() error { return s.agreed(ctx, master, replicas) }))
	return s
}

// hurry makes a sentinel look and tell more often than every 10 s and 2 s. One that was held up itself by a busy machine
// mistrusts its clock for 1 s, not 30.
func hurry(ctx context.Context, w *Server) error {
	return w.admin().Do(ctx, "SENTINEL", "DEBUG", "INFO-PERIOD", 200, "PUBLISH-PERIOD", 200, "PING-PERIOD", 200,
		"ASK-PERIOD", 200, "TILT-PERIOD", 1000).Err()
}

// replicated reports what is wrong with the replicas that are up.
func (s *Sentinel) replicated(ctx context.Context) error {
	masters := 0
	for _, node := range s.nodes {
		if !node.up() {
			continue
		}
		rdb := node.admin()
		info, err := rdb.Info(ctx, "replication").Result()
		if err != nil {
			return err
		}
		if strings.Contains(info, "role:master") {
			masters++
		} else if !strings.Contains(info, "master_link_status:up") {
			return fmt.Errorf("replica %s is not in step", node.addr())
		}
	}
	if masters != 1 {
		return fmt.Errorf("%d masters", masters)
	}
	return nil
}

// agreed reports what the sentinels that are up lack to know: master, with so many replicas that could take over, and
// each other.
func (s *Sentinel) agreed(ctx context.Context, master *Server, replicas int) error {
	for _, w := range s.sentinels {
		if !w.up() {
			continue
		}
		m, err := w.rdb.Master(ctx, masterName).Result()
		if err != nil {
			return err
		}
		if got := net.JoinHostPort(m["ip"], m["port"]); got != master.addr() || m["flags"] != "master" {
			return fmt.Errorf("sentinel %s takes %s for the master (%s)", w.addr(), got, m["flags"])
		}
		if n := len(s.sentinels) - 1; m["num-other-sentinels"] != fmt.Sprint(n) {
			return fmt.Errorf("sentinel %s knows %s of %d others", w.addr(), m["num-other-sentinels"], n)
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
			return fmt.Errorf("sentinel %s knows %d of %d replicas", w.addr(), able, replicas)
		}
	}
	return nil
}

// Options returns what connects a go-redis failover client, for the caller to change.
func (s *Sentinel) Options() *redis.FailoverOptions {
	o := &redis.FailoverOptions{MasterName: masterName}
	for _, w := range s.sentinels {
		o.SentinelAddrs = append(o.SentinelAddrs, w.addr())
	}
	return o
}

// Client returns a new client of the master, whichever that is, which is closed at the end of the test.
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

// Version is that of every node.
func (s *Sentinel) Version() Version { return s.nodes[0].Version() }

// Master is what the first sentinel that is up takes for the master.
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
	for _, node := range s.nodes {
		if node.addr() == net.JoinHostPort(addr[0], addr[1]) {
			return node, nil
		}
	}
	return nil, fmt.Errorf("the sentinels' master %v is none of the nodes", addr)
}

// anyUp is a sentinel that is up.
func (s *Sentinel) anyUp() (watcher, error) {
	for _, w := range s.sentinels {
		if w.up() {
			return w, nil
		}
	}
	return watcher{}, errors.New("no sentinel is up")
}

// Failover has a replica take over from the master, and returns the new master once it is settled.
func (s *Sentinel) Failover() *Server {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	old, err := s.master(ctx)
	must(s.t, err)
	w, err := s.anyUp()
	must(s.t, err)
	// Refused while no replica has been heard of lately, or while the last failover is still going on.
	must(s.t, until(ctx, func() error { return w.rdb.Failover(ctx, masterName).Err() }))
	return s.settle(ctx, old)
}

// Settle returns the master when the sentinels that are up agree on one that is up, and its replicas are in step: after
// the master was killed or paused, when one of its replicas has taken over.
func (s *Sentinel) Settle() *Server {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.settle(ctx, nil)
}

// settle waits for a master other than old.
func (s *Sentinel) settle(ctx context.Context, old *Server) *Server {
	s.t.Helper()
	var master *Server
	must(s.t, until(ctx, func() (err error) {
		master, err = s.master(ctx)
		if err != nil {
			return err
		}
		if master == old || !master.up() {
			return fmt.Errorf("the master is still %s", master.addr())
		}
		return errors.Join(s.agreed(ctx, master, 0), s.replicated(ctx))
	}))
	return master
}
