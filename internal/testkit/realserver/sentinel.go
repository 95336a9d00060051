package realserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// A Sentinel is a master with its replicas, watched by three sentinels. The methods of its nodes break it; a master that is killed or paused
// is failed over.
type Sentinel struct {
	t         testing.TB
	nodes     []*Server
	sentinels []*Server
}

// MasterName is the sentinels' name for the master.
const MasterName = "mayfly"

// StartSentinel starts a master with replicas (at least one) and three sentinels, and returns when each of them knows all others.
func StartSentinel(t testing.TB, replicas int, o Options) *Sentinel {
	t.Helper()
	if replicas < 1 {
		t.Fatalf("realserver: StartSentinel needs at least 1 replica, got %d", replicas)
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

	for range 3 {
		w := prepare(t, b)
		w.mode = []string{"--sentinel"}
		w.config = []string{ // in place of a server's lines, which a sentinel refuses
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", MasterName, master.port),
			"sentinel down-after-milliseconds " + MasterName + " 1000",
			"sentinel failover-timeout " + MasterName + " 5000",
		}
		s.sentinels = append(s.sentinels, w)
	}
	startAll(t, s.sentinels...)
	for _, w := range s.sentinels {
		w.tune(200 * time.Millisecond)
	}
	must(t, until(func(ctx context.Context) error { return s.agreed(ctx, master, replicas) }))
	// Once they have met, they go back to their normal period, which also decides whom they trust: after 3 periods of silence a replica is no
	// candidate, and one that has been a master for 4 periods without a known failover is turned back.
	for _, w := range s.sentinels {
		w.tune(time.Second)
	}
	return s
}

// tune sets how often a sentinel looks and tells; by default it does some things every second, some every 10 s. After a stall on a busy
// machine it mistrusts its clock for 1 s instead of 30.
func (s *Server) tune(period time.Duration) {
	s.t.Helper()
	ms := strconv.FormatInt(period.Milliseconds(), 10)
	s.Do("SENTINEL", "DEBUG", "PING-PERIOD", ms, "ASK-PERIOD", ms, "PUBLISH-PERIOD", ms, "INFO-PERIOD", ms, "TILT-PERIOD", "1000")
}

// about asks a sentinel about the master, or to do something to it.
func (s *Server) about(ctx context.Context, what string) (resp.Value, error) {
	return s.ask(ctx, "SENTINEL", what, MasterName)
}

// fields are the names and values of a reply to SENTINEL.
func fields(v resp.Value) map[string]string {
	m := make(map[string]string)
	for pair := range slices.Chunk(v.List, 2) {
		m[pair[0].Text] = pair[1].Text
	}
	return m
}

// replicated returns what is wrong with the nodes that are up: master must be one, and the others in step with one.
func (s *Sentinel) replicated(ctx context.Context, master *Server) error {
	for _, node := range s.nodes {
		if !node.up() {
			continue
		}
		info, err := node.ask(ctx, "INFO", "replication")
		if err != nil {
			return err
		}
		want := "master_link_status:up"
		if node == master {
			want = "role:master"
		}
		if !strings.Contains(info.Text, want) {
			return fmt.Errorf("%s is not %s: %s", node.Addr(), want, info.Text)
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
		v, err := w.about(ctx, "MASTER")
		if err != nil {
			return err
		}
		m := fields(v)
		if got := net.JoinHostPort(m["ip"], m["port"]); got != master.Addr() || m["flags"] != "master" {
			return fmt.Errorf("sentinel %s takes %s for the master (%s)", w.Addr(), got, m["flags"])
		}
		if n := len(s.sentinels) - 1; m["num-other-sentinels"] != fmt.Sprint(n) {
			return fmt.Errorf("sentinel %s knows %s of %d others", w.Addr(), m["num-other-sentinels"], n)
		}
		known, err := w.about(ctx, "REPLICAS")
		if err != nil {
			return err
		}
		able := 0
		for _, v := range known.List {
			if r := fields(v); r["flags"] == "slave" && r["master-link-status"] == "ok" {
				able++
			}
		}
		if able < replicas {
			return fmt.Errorf("sentinel %s knows %d of %d replicas", w.Addr(), able, replicas)
		}
	}
	return nil
}

// Nodes returns the first master and its replicas.
func (s *Sentinel) Nodes() []*Server { return slices.Clone(s.nodes) }

// Sentinels returns the three sentinels.
func (s *Sentinel) Sentinels() []*Server { return slices.Clone(s.sentinels) }

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
	v, err := w.about(ctx, "GET-MASTER-ADDR-BY-NAME")
	if err != nil {
		return nil, err
	}
	if len(v.List) != 2 {
		return nil, fmt.Errorf("sentinel %s knows no master", w.Addr())
	}
	addr := net.JoinHostPort(v.List[0].Text, v.List[1].Text)
	i := slices.IndexFunc(s.nodes, func(node *Server) bool { return node.Addr() == addr })
	if i < 0 {
		return nil, fmt.Errorf("the sentinels' master %s is none of the nodes", addr)
	}
	return s.nodes[i], nil
}

// anyUp returns a sentinel that is up.
func (s *Sentinel) anyUp() (*Server, error) {
	i := slices.IndexFunc(s.sentinels, (*Server).up)
	if i < 0 {
		return nil, errors.New("no sentinel is up")
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
		_, err := w.about(ctx, "FAILOVER")
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
