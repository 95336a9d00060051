// Package nodes asks the servers behind a client: each question within one budget of time, on the node that has the key, and
// not at all while that node does not answer.
//
//	node.go     one server: how it is asked, and how redirections are followed
//	read.go     reads, which travel together where many wait
//	clock.go    what is known of a server's clock, so that a read need not ask for PTTL
//	crowd.go    how long a call waits for others of its own, and what is not the server's fault
//	budget.go   what a question may cost
//	breaker.go  what counts as a failure, and when a server that failed is asked again
//	tend.go     how it is asked again without a caller
//	script.go   scripts, by name where the server knows them
//	loading.go  who brings a script that it does not know
package nodes

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"
)

// Options say how servers are asked.
type Options struct {
	// Redis is the client.
	Redis redis.UniversalClient

	// Timeout is what one question may take, whatever the client's own settings.
	Timeout time.Duration

	// Breaker is told when the breaker of a server opens and closes. May be nil.
	Breaker func(server string, open bool)

	// Wait is how long a question may wait for others of this process to give a connection back, which is not part of Timeout. Zero is
	// 10 s.
	Wait time.Duration

	// Waited is told that n calls have waited for that, the first of them for so long; with an err they were not sent. Waits of less than
	// a millisecond are not told. May be nil.
	Waited func(ctx context.Context, took time.Duration, n int, err error)

	// Moved is told, before anything else is done about it, that a slot of a cluster is somewhere else. May be nil.
	Moved func()

	// Start runs a function in a goroutine that its owner's Close waits for, and reports false if the owner is closed. Nil starts
	// goroutines that nobody counts.
	Start func(func()) bool

	// Closing is closed when the owner's Close is called. With it, servers that do not answer are probed in the background, and nil lets one
	// call in half a second be the probe.
	Closing <-chan struct{}
}

// Nodes are the servers of one client. They hold no goroutine, but for reads that travel together, which last as long as somebody waits,
// for the reading of a cluster's slots, which go-redis ends in its own time, and for the probing of a server that does not answer.
type Nodes struct {
	only    *Node // of a client that is one server, or one that is not known
	ring    *redis.Ring
	cluster *redis.ClusterClient
	budget  time.Duration
	wait    time.Duration
	told    func(string, bool)
	waited  func(context.Context, time.Duration, int, error)
	moved   func()

	nodes sync.Map    // *redis.Client: *Node; as many as there ever were masters
	known atomic.Bool // the cluster's slots have been read once, so asking for a key's master does not block
	slots Breaker     // of the reading of the slots
	reads singleflight.Group
	start func(func()) bool

	closing <-chan struct{}
}

// New returns the servers of o.Redis. It does no I/O.
func New(o Options) *Nodes {
	ns := &Nodes{budget: o.Timeout, wait: cmp.Or(o.Wait, 10*time.Second), told: o.Breaker, waited: o.Waited, start: o.Start, closing: o.Closing}
	if ns.waited == nil {
		ns.waited = func(context.Context, time.Duration, int, error) {}
	}
	if ns.start == nil {
		ns.start = func(f func()) bool { go f(); return true }
	}
	switch rdb := o.Redis.(type) {
	case *redis.ClusterClient:
		ns.cluster, ns.moved = rdb, o.Moved
	case *redis.Ring:
		ns.ring = rdb
	default:
		ns.only = ns.newNode(rdb)
	}
	return ns
}

// Of returns the node that has key.
func (ns *Nodes) Of(ctx context.Context, key string) (*Node, error) {
	if ns.only != nil {
		return ns.only, nil
	}
	if ns.ring != nil {
		client, err := ns.ring.GetShardClientForKey(key)
		if err != nil {
			return nil, err
		}
		return ns.node(client), nil
	}
	if !ns.known.Load() {
		if err := ns.discover(ctx, key); err != nil {
			return nil, err
		}
	}
	client, err := ns.cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return ns.node(client), nil
}

func (ns *Nodes) node(client *redis.Client) *Node {
	if n, ok := ns.nodes.Load(client); ok {
		return n.(*Node)
	}
	n := ns.newNode(client)
	n.cluster, n.ring, n.moved = ns.cluster, ns.ring, ns.moved
	known, _ := ns.nodes.LoadOrStore(client, n)
	return known.(*Node)
}

var errClosed = errors.New("who asks is closed")

// discover reads the cluster's slots, within the budget: go-redis does it on the first command, in its own time. Those who ask at the
// same time share one reading.
func (ns *Nodes) discover(ctx context.Context, key string) error {
	begun := time.Now()
	if ns.slots.Allow(begun) == Refuse {
		return ErrOpen
	}
	limited, cancel := context.WithTimeout(ctx, ns.budget)
	defer cancel()
	done := make(chan error, 1)
	if !ns.start(func() {
		_, err, _ := ns.reads.Do("slots", func() (any, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ns.budget)
			defer cancel()
			_, err := ns.cluster.MasterForKey(ctx, key)
			return nil, err
		})
		done <- err
	}) {
		return errClosed
	}
	var err error
	select {
	case err = <-done:
	case <-limited.Done():
		err = limited.Err()
	}
	switch {
	case err == nil:
		ns.known.Store(true)
		ns.slots.Success()
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		ns.slots.Failure(time.Now(), 1)
	}
	return err
}

// Each calls ask once per server with the indices of the keys that are its, at the same time if there are several
// servers, and returns when all are done. A key whose server is not known goes to lost.
func (ns *Nodes) Each(ctx context.Context, keys []string, ask func(n *Node, mine []int), lost func(i int, err error)) {
	if len(keys) == 0 {
		return
	}
	if ns.only != nil {
		all := make([]int, len(keys))
		for i := range all {
			all[i] = i
		}
		ask(ns.only, all)
		return
	}
	if ns.cluster != nil && !ns.known.Load() { // once for all keys
		if err := ns.discover(ctx, keys[0]); err != nil {
			for i := range keys {
				lost(i, err)
			}
			return
		}
	}
	byServer := make(map[*Node][]int)
	for i, key := range keys {
		server, err := ns.Of(ctx, key)
		if err != nil {
			lost(i, err)
			continue
		}
		byServer[server] = append(byServer[server], i)
	}
	var wg sync.WaitGroup
	for server, mine := range byServer {
		if len(byServer) == 1 {
			ask(server, mine)
			break
		}
		wg.Go(func() { ask(server, mine) })
	}
	wg.Wait()
}

// Masters calls do for every server that holds keys, one after another or at the same time.
func (ns *Nodes) Masters(ctx context.Context, do func(ctx context.Context, n *Node) error) error {
	switch {
	case ns.cluster != nil:
		return ns.eachMaster(ctx, do)
	case ns.ring != nil:
		return ns.ring.ForEachShard(ctx, func(ctx context.Context, c *redis.Client) error {
			return do(ctx, ns.node(c))
		})
	}
	return do(ctx, ns.only)
}

// eachMaster does it for the masters of a cluster. Who they are go-redis asks in its own time: here within the budget, and then what
// it still finds out is not used.
func (ns *Nodes) eachMaster(ctx context.Context, do func(ctx context.Context, n *Node) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const asking, found, givenUp = 0, 1, 2
	var state atomic.Int32
	masters, done := make(chan struct{}), make(chan error, 1)
	if !ns.start(func() {
		done <- ns.cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			if state.CompareAndSwap(asking, found) {
				close(masters)
			}
			if state.Load() == givenUp {
				return ErrSlow
			}
			return do(ctx, ns.node(c))
		})
	}) {
		return errClosed
	}
	timer := time.NewTimer(ns.budget)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-masters:
	case <-ctx.Done():
		if state.CompareAndSwap(asking, givenUp) {
			return ctx.Err()
		}
	case <-timer.C:
		if state.CompareAndSwap(asking, givenUp) {
			return ErrSlow
		}
	}
	return <-done
}
