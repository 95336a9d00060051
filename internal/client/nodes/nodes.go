// Package nodes asks the servers behind a client. Each question goes to the node that has the key and has a time budget. A node that does
// not answer is not asked for a while.
//
//	loading.go  who brings a script that the server does not know
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

	// Timeout is how long one question may take, whatever the client's own settings.
	Timeout time.Duration

	// Breaker is told when the breaker of a server opens and closes. May be nil.
	Breaker func(server string, open bool)

	// Wait is how long a question may wait for other calls of this process to return a connection. This time is not part of Timeout. Zero:
	// 10 s.
	Wait time.Duration

	// Waited is told that n calls have waited for a connection, the first one for took; with an err they were not sent. It is not told of
	// waits under a millisecond. May be nil.
	Waited func(ctx context.Context, took time.Duration, n int, err error)

	// Moved is called when a slot of a cluster turns out to have moved, before anything else is done about it. May be nil.
	Moved func()

	// Start runs a function in a goroutine that its owner's Close waits for, and reports false if the owner is closed. With nil, goroutines
	// are started that nothing waits for.
	Start func(func()) bool

	// Closing is closed by the owner's Close. With it, servers that do not answer are probed in the background. With nil, one call every
	// half second is the probe.
	Closing <-chan struct{}
}

// Nodes are the servers of one client. They start goroutines only for reads that travel together, while a caller waits; for reading a
// cluster's slots, which go-redis ends in its own time; and for probing a server that does not answer.
type Nodes struct {
	only    *Node // of a client for one server, or of a kind that is not known
	ring    *redis.Ring
	cluster *redis.ClusterClient
	budget  time.Duration
	wait    time.Duration
	told    func(string, bool)
	waited  func(context.Context, time.Duration, int, error)
	moved   func()

	nodes sync.Map    // *redis.Client: *Node; it keeps every master there ever was
	known atomic.Bool // the cluster's slots were read once, so finding a key's master does not block
	slots Breaker     // for reading the slots
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

var errClosed = errors.New("the caller is closed")

// discover reads the cluster's slots within the budget; go-redis would read them on the first command, in its own time. Concurrent callers
// share one reading.
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

// Each calls ask once per server, with the indices of its keys, and returns when all calls have returned. Several servers are asked
// concurrently. For a key whose server is not known it calls lost.
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

// Masters calls do for every server that holds keys, one after another or concurrently.
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

// eachMaster calls do for the masters of a cluster. go-redis looks them up in its own time. eachMaster waits for that within the budget,
// and ignores masters that are found later.
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
