package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/journal"
	"github.com/mayflycache/mayfly/internal/redis/replica"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// nodes are what mayfly serve runs: one server, or the masters of a cluster.
type nodes struct {
	servers   []*server.Server
	journal   *journal.Journal // of a single server, if it keeps its data
	link      *replica.Link    // of a single server: REPLICAOF
	recovered journal.Report
	listeners []net.Listener
	serving   sync.WaitGroup
}

// open makes one server, or one for each master of a cluster, and listens at addr and the ports after it. A single server keeps its data if kept
// names a directory, and follows another server if of names one.
func open(addr string, masters int, o engine.Options, kept journal.Options, of followed) (n *nodes, err error) {
	n = new(nodes)
	defer func() {
		if err != nil {
			n.abandon()
		}
	}()
	var cluster *engine.Cluster
	if masters > 0 {
		cluster = engine.NewCluster(masters, 0)
	}
	for i := range max(masters, 1) {
		var so server.Options
		if cluster != nil {
			o.Cluster = &engine.ClusterOptions{Cluster: cluster, Node: i}
			so.Broadcast = func(m engine.Message) { n.broadcast(i, m) }
		}
		e := engine.New(o)
		if kept.Dir != "" {
			if n.journal, n.recovered, err = journal.Open(kept, e, func() int64 { return time.Now().UnixMicro() }); err != nil {
				return n, err
			}
			so.Keeper = n.journal
		}
		s, err := server.New(e, so)
		if err != nil {
			return n, err
		}
		if n.journal != nil {
			n.journal.Begin(s.Do)
		}
		n.servers = append(n.servers, s)
		l, err := listen(addr, i)
		if err != nil {
			return n, err
		}
		n.listeners = append(n.listeners, l)
		if cluster == nil {
			if n.link, err = of.follow(s, n.journal, l); err != nil {
				return n, err
			}
		}
		if cluster != nil {
			cluster.Announce(i, announced(l), l.Addr().(*net.TCPAddr).Port)
		}
	}
	return n, nil
}

// abandon gives back what open has taken.
func (n *nodes) abandon() {
	for _, l := range n.listeners {
		l.Close()
	}
	if n.link != nil {
		n.link.Close()
	}
	if n.journal != nil {
		n.journal.Close()
	}
}

// listen listens above ports higher than addr; port 0 stays 0, any free one.
func listen(addr string, above int) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return nil, err
	}
	if n != 0 {
		n += above
	}
	return net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(n)))
}

// announced returns the host that clients are told for a node. If the node listens on all interfaces it is empty: clients use the host they
// connected to.
func announced(l net.Listener) string {
	if ip := l.Addr().(*net.TCPAddr).IP; !ip.IsUnspecified() {
		return ip.String()
	}
	return ""
}

// serve serves until ctx ends or a listener breaks, which is the error.
func (n *nodes) serve(ctx context.Context) error {
	broken := make(chan error, len(n.servers))
	for i, s := range n.servers {
		n.serving.Go(func() {
			if err := s.Serve(n.listeners[i]); err != nil {
				broken <- err
			}
		})
	}
	select {
	case err := <-broken:
		return err
	case <-ctx.Done():
		return nil
	}
}

// close stops the servers; the error is ctx's if clients did not read their replies until it ended.
func (n *nodes) close(ctx context.Context) error {
	var errs []error
	if n.link != nil {
		n.link.Close()
	}
	for _, s := range n.servers {
		errs = append(errs, s.Close(ctx))
	}
	n.serving.Wait()
	if n.journal != nil {
		errs = append(errs, n.journal.Close())
	}
	return errors.Join(errs...)
}

func (n *nodes) broadcast(from int, m engine.Message) {
	for i, s := range n.servers {
		if i != from {
			s.Receive(m)
		}
	}
}
