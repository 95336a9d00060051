package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/breaker"
)

// ErrOpen says that a server was not asked because it did not answer lately.
var ErrOpen = errors.New("redis is not asked: its breaker is open")

// ErrSlow says that a server did not answer within Options.Timeout.
var ErrSlow = errors.New("redis did not answer in time")

// server is one Redis: how to ask it within the budget, and whether to ask it at all.
//
// A client that respects contexts is asked on a context of the whole budget. One that does not (go-redis's default)
// heeds a context while it waits for a connection, and its own timeouts from then on; for it a third of the budget is
// for the connection, and a clone on the same pool with the other two thirds as timeout is asked. Such a clone runs no
// hooks: see Warnings.
type server struct {
	name    string
	client  asker
	cluster *redis.ClusterClient // knows where else a key may be; nil if there is nowhere else
	limits  limits               // by the context's share of the budget
	budget  time.Duration
	breaker breaker.Breaker
	told    func(server string, open bool)
	moved   func() // of the cluster
}

// Warnings says what is dangerous in how rdb is set up.
func Warnings(rdb redis.UniversalClient) (warnings []string) {
	respects := true
	switch c := rdb.(type) {
	case *redis.Client:
		respects = c.Options().ContextTimeoutEnabled
	case *redis.ClusterClient:
		respects = c.Options().ContextTimeoutEnabled
	default:
		return []string{"the client is neither a redis.Client nor a redis.ClusterClient: a Redis that hangs costs what its own timeouts allow"}
	}
	if !respects {
		return []string{"the client's ContextTimeoutEnabled is false: a third of RedisTimeout is for getting a connection, and hooks such as tracing do not run; set it in the client's options"}
	}
	return nil
}

// asker is what a server needs of a client.
type asker interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

func serverOf(client asker, budget time.Duration, told func(string, bool)) *server {
	s := &server{name: "redis", client: client, budget: budget, told: told}
	s.limits.after = budget
	if c, ok := client.(*redis.Client); ok {
		o := c.Options()
		s.name = o.Addr
		if !o.ContextTimeoutEnabled {
			s.limits.after = budget / 3
			s.client = c.WithTimeout(budget - budget/3)
		}
	}
	return s
}

// one asks a single command. Its error says that there was no answer; an answer that is an error is cmd's.
func (s *server) one(ctx context.Context, cmd redis.Cmder) error {
	begun, err := s.begin(ctx)
	if err != nil {
		return err
	}
	limited := s.limits.begin(ctx, begun)
	defer s.limits.end(limited)
	s.client.Process(limited, cmd)
	return s.end(ctx, begun, s.settle(limited, cmd))
}

// do asks several commands in one trip. It returns as one does.
func (s *server) do(ctx context.Context, cmds ...redis.Cmder) error {
	if len(cmds) == 1 {
		return s.one(ctx, cmds[0])
	}
	begun, err := s.begin(ctx)
	if err != nil {
		return err
	}
	limited := s.limits.begin(ctx, begun)
	defer s.limits.end(limited)
	pipe := s.client.Pipeline()
	pipe.BatchProcess(limited, cmds...)
	pipe.Exec(limited)
	for _, cmd := range cmds {
		if err := s.settle(limited, cmd); err != nil {
			return s.end(ctx, begun, err)
		}
	}
	return s.end(ctx, begun, nil)
}

func (s *server) begin(ctx context.Context) (time.Time, error) {
	now := time.Now()
	if err := ctx.Err(); err != nil {
		return now, err
	}
	if s.breaker.Allow(now) == breaker.Refuse {
		return now, ErrOpen
	}
	return now, nil
}

// end tells the breaker how it went. A caller who left says nothing about the server, unless the caller was patient
// and its own deadline merely was the earlier one.
func (s *server) end(ctx context.Context, begun time.Time, err error) error {
	if err == nil {
		if s.breaker.Success() && s.told != nil {
			s.told(s.name, false)
		}
		return nil
	}
	now := time.Now()
	left := ctx.Err()
	if at, ok := ctx.Deadline(); left == nil && ok && !now.Before(at) {
		left = context.DeadlineExceeded // the socket was faster to notice than the context
	}
	if left == nil || errors.Is(left, context.DeadlineExceeded) && now.Sub(begun) >= s.budget/3 {
		if s.breaker.Failure(now) && s.told != nil {
			s.told(s.name, true)
		}
	}
	switch {
	case left != nil:
		return left
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return fmt.Errorf("%w (%s, %v): %w", ErrSlow, s.name, s.budget, err)
	}
	return err
}

// settle returns an error if cmd got no answer. An answer that sends the caller elsewhere is followed.
func (s *server) settle(ctx context.Context, cmd redis.Cmder) error {
	err := cmd.Err()
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	if s.cluster != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.IsReadOnlyError(err)) {
		if s.moved != nil {
			s.moved()
		}
		s.cluster.ReloadState(ctx)
		cmd.SetErr(nil)
		s.cluster.Process(ctx, cmd)
		if err = cmd.Err(); err == nil {
			return nil
		}
	}
	if answered(err) {
		return nil
	}
	return err
}

// answered tells an error that a working server replied from the lack of an answer. A server that loads its data, or a
// cluster that is down, replies too, but not about the key.
func answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) &&
		!redis.IsLoadingError(err) && !redis.IsClusterDownError(err) && !redis.IsMasterDownError(err)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// servers finds the server of a key.
type servers struct {
	only    *server // of a client that is one server, or one that finds servers by itself
	ring    *redis.Ring
	cluster *redis.ClusterClient
	budget  time.Duration
	told    func(string, bool)
	moved   func()

	nodes sync.Map        // *redis.Client: *server; as many as there ever were masters
	known atomic.Bool     // the cluster's slots have been read once, so asking for a key's master does not block
	slots breaker.Breaker // of the reading of the slots
}

func serversOf(rdb redis.UniversalClient, budget time.Duration, told func(string, bool), moved func()) servers {
	if cluster, ok := rdb.(*redis.ClusterClient); ok {
		return servers{cluster: cluster, budget: budget, told: told, moved: moved}
	}
	ring, _ := rdb.(*redis.Ring)
	return servers{only: serverOf(rdb, budget, told), ring: ring, budget: budget, told: told}
}

func (s *servers) of(ctx context.Context, key string) (*server, error) {
	if s.only != nil {
		return s.only, nil
	}
	if !s.known.Load() {
		if err := s.discover(ctx, key); err != nil {
			return nil, err
		}
	}
	client, err := s.cluster.MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return s.node(client), nil
}

func (s *servers) node(client *redis.Client) *server {
	if n, ok := s.nodes.Load(client); ok {
		return n.(*server)
	}
	n := serverOf(client, s.budget, s.told)
	n.cluster, n.moved = s.cluster, s.moved
	known, _ := s.nodes.LoadOrStore(client, n)
	return known.(*server)
}

// discover reads the cluster's slots, within the budget: go-redis does it on the first command, in its own time.
func (s *servers) discover(ctx context.Context, key string) error {
	begun := time.Now()
	if s.slots.Allow(begun) == breaker.Refuse {
		return ErrOpen
	}
	limited, cancel := context.WithTimeout(ctx, s.budget)
	defer cancel()
	done := make(chan error, 1)
	go func() { // ends when go-redis's own timeouts do
		_, err := s.cluster.MasterForKey(limited, key)
		done <- err
	}()
	var err error
	select {
	case err = <-done:
	case <-limited.Done():
		err = limited.Err()
	}
	switch {
	case err == nil:
		s.known.Store(true)
		s.slots.Success()
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		s.slots.Failure(time.Now())
	}
	return err
}

// each calls ask once per server with the indices of the keys that are its, at the same time if there are several
// servers, and returns when all are done. A key whose server is not known goes to lost.
func (s *servers) each(ctx context.Context, keys []string, ask func(s *server, mine []int), lost func(i int, err error)) {
	if len(keys) == 0 {
		return
	}
	if s.only != nil {
		all := make([]int, len(keys))
		for i := range all {
			all[i] = i
		}
		ask(s.only, all)
		return
	}
	byServer := make(map[*server][]int)
	for i, key := range keys {
		server, err := s.of(ctx, key)
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
