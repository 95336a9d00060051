package nodes_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/background"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// tended is a hung server with a caller that asks it every millisecond.
type tended struct {
	srv   *redistest.Server
	node  *nodes.Node
	works *background.Group
	dials atomic.Int32
	open  atomic.Int32 // reports that the breaker is open, less reports that it is closed
	times atomic.Int32 // reports that the breaker is open
}

func inTending(t *testing.T, owned bool, play func(t *testing.T, s *tended), set ...func(*redis.Options)) {
	synctest.Test(t, func(t *testing.T) {
		s := &tended{srv: redistest.Start(t), works: background.New(errors.New("closed"))}
		o := s.srv.Options()
		o.ContextTimeoutEnabled, o.MaxRetries = true, -1
		for _, f := range set {
			f(o)
		}
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			s.dials.Add(1)
			return s.srv.Dial(ctx, network, addr)
		}
		rdb := redis.NewClient(o)
		defer func() { rdb.Close(); time.Sleep(time.Minute) }()
		no := nodes.Options{Redis: rdb, Timeout: 100 * time.Millisecond, Breaker: s.told}
		if owned {
			no.Start, no.Closing = s.works.Start, s.works.Closing()
		}
		s.node, _ = nodes.New(no).Of(t.Context(), "k")
		s.ask(t, 1)
		s.srv.Hang()
		for range nodes.Threshold {
			if err := s.ask(t, 1); err == nil {
				t.Error("a server that hangs has answered")
			}
		}
		play(t, s)
		begun := time.Now()
		if err := s.works.Close(t.Context()); err != nil || time.Since(begun) > 100*time.Millisecond {
			t.Errorf("Close took %v: %v", time.Since(begun), err)
		}
		if owned && s.open.Load() != 0 {
			t.Error("after Close it is still told to be open")
		}
	})
}

func (s *tended) told(_ string, open bool) {
	if !open {
		s.open.Add(-1)
		return
	}
	s.open.Add(1)
	s.times.Add(1)
}

// either plays with an owner that ends background work, and without one.
func either(t *testing.T, play func(t *testing.T, s *tended)) {
	t.Run("owned", func(t *testing.T) { inTending(t, true, play) })
	t.Run("not owned", func(t *testing.T) { inTending(t, false, play) })
}

// ask asks a number of times, a millisecond apart, and returns the last error. It stops at the first answer.
func (s *tended) ask(t *testing.T, times int) (err error) {
	for range times {
		if err = s.node.Ask1(t.Context(), redis.NewCmd(t.Context(), "set", "k", 1)); err == nil {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

// Once the breaker of a hung server is open nobody waits for the server, and it is used again soon after it answers.
func TestNobodyPaysForTheProbe(t *testing.T) {
	inTending(t, true, func(t *testing.T, s *tended) {
		begun := time.Now()
		if err := s.ask(t, 3000); !errors.Is(err, nodes.ErrOpen) {
			t.Errorf("after 3 s: %v", err)
		}
		if paid := time.Since(begun) - 3000*time.Millisecond; paid > 0 {
			t.Errorf("the callers paid %v", paid)
		}
		s.srv.Thaw()
		begun = time.Now()
		if err := s.ask(t, 1000); err != nil || time.Since(begun) > nodes.Open+100*time.Millisecond {
			t.Errorf("it is used again after %v: %v", time.Since(begun), err)
		}
		s.srv.Hang() // and once more
		s.ask(t, 6)
		if begun = time.Now(); s.ask(t, 2000) == nil || time.Since(begun) > 2000*time.Millisecond {
			t.Errorf("the second time the callers paid %v", time.Since(begun)-2000*time.Millisecond)
		}
		s.srv.Thaw()
		if err := s.ask(t, 1000); err != nil {
			t.Error(err)
		}
	})
}

// Without an owner nothing runs in the background: one call in half a second is the probe.
func TestWithoutAnOwnerACallIsTheProbe(t *testing.T) {
	inTending(t, false, func(t *testing.T, s *tended) {
		time.Sleep(nodes.Open)
		begun := time.Now()
		if err := s.ask(t, 1); errors.Is(err, nodes.ErrOpen) || time.Since(begun) < 100*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		for range 100 { // an occasional call is refused, or is the probe
			time.Sleep(20 * time.Second)
			s.ask(t, 1)
		}
		if s.open.Load() != 1 || s.times.Load() != 1 {
			t.Errorf("a server that hangs all the time is reported as %d, after %d changes", s.open.Load(), s.times.Load())
		}
	})
}

// When a server answers again, an event reports it soon, even if nobody asks the server.
func TestARecoveryIsReportedWithoutACaller(t *testing.T) {
	either(t, func(t *testing.T, s *tended) {
		time.Sleep(25 * time.Second)
		if n := s.open.Load(); n != 1 {
			t.Errorf("of a server that hangs it is told %d", n)
		}
		s.srv.Thaw()
		time.Sleep(6 * time.Second)
		if n := s.open.Load(); n != 0 {
			t.Errorf("of one that answers again it is told %d", n)
		}
	})
}

// Nobody asks, so it is not probed for longer than five minutes. No call is refused then, and that is what is told; the next failure
// opens it again.
func TestALateCallIsTheProbe(t *testing.T) {
	either(t, func(t *testing.T, s *tended) {
		time.Sleep(6 * time.Minute)
		before := s.dials.Load()
		time.Sleep(time.Minute)
		if n := s.dials.Load(); n != before || s.open.Load() != 0 {
			t.Errorf("%d probes before, and %d in a minute in which nobody asked; it is told to be open: %d", before, n-before, s.open.Load())
		}
		if err := s.ask(t, 1); err == nil || errors.Is(err, nodes.ErrOpen) || s.open.Load() != 1 {
			t.Errorf("who comes late: %v; it is told to be open: %d", err, s.open.Load())
		}
		if err := s.ask(t, 1); !errors.Is(err, nodes.ErrOpen) || s.times.Load() != 2 {
			t.Errorf("who comes next: %v; it is told %d times to be open", err, s.times.Load())
		}
		s.srv.Thaw()
		time.Sleep(time.Second)
		if err := s.ask(t, 1); err != nil {
			t.Errorf("after it answers: %v", err)
		}
	})
}

// A background question that ends after the breaker went to rest does not open it again, however long the client waits for an answer.
func TestABreakerThatRestsIsNotOpenedByAQuestionOfBefore(t *testing.T) {
	for late := 0; late < 8; late += effort.Times(3, 1) { // rest comes at another moment of the questions
		inTending(t, true, func(t *testing.T, s *tended) {
			time.Sleep(time.Duration(late) * 170 * time.Millisecond)
			s.ask(t, 1)
			time.Sleep(15 * time.Minute)
			if s.open.Load() != 0 || s.times.Load() != 1 {
				t.Errorf("a quarter of an hour without a call: it is told to be open: %d, after %d times", s.open.Load(), s.times.Load())
			}
		}, func(o *redis.Options) { o.ReadTimeout = 3 * time.Second })
	}
}

// A server is used even if a connection to it takes longer than a call may take: connections are made in the background.
func TestAServerFarAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, works := redistest.Start(t), background.New(errors.New("closed"))
		srv.Latency(50 * time.Millisecond)
		o := srv.Options()
		o.ContextTimeoutEnabled, o.MaxRetries = true, -1
		rdb := redis.NewClient(o)
		defer func() { rdb.Close(); time.Sleep(time.Minute) }()
		node, _ := nodes.New(nodes.Options{Redis: rdb, Timeout: 100 * time.Millisecond, Start: works.Start, Closing: works.Closing()}).Of(t.Context(), "k")
		s := &tended{node: node}
		begun := time.Now()
		for good := 0; good < 100; good++ {
			if err := s.ask(t, 1); err != nil {
				good = 0
			}
			if time.Since(begun) > 7*time.Second {
				t.Fatal("it is not found to answer")
			}
		}
		if err := works.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Callers who leave before the answer say nothing about a server that answers others meanwhile.
func TestCallersWhoLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		o := srv.Options()
		o.ContextTimeoutEnabled, o.MaxRetries, o.PoolSize = true, -1, 40
		rdb := redis.NewClient(o)
		defer func() { rdb.Close(); time.Sleep(time.Minute) }()
		opened, works := 0, background.New(errors.New("closed"))
		defer works.Close(t.Context())
		node, _ := nodes.New(nodes.Options{Redis: rdb, Timeout: 40 * time.Millisecond, Start: works.Start, Closing: works.Closing(), Breaker: func(_ string, open bool) {
			if open {
				opened++
			}
		}}).Of(t.Context(), "k")
		ask := func(ctx context.Context) error { return node.Ask1(ctx, redis.NewCmd(ctx, "set", "k", 1)) }
		var callers sync.WaitGroup
		for range 40 { // all have their connections
			callers.Go(func() { ask(t.Context()) })
		}
		callers.Wait()
		srv.Latency(15 * time.Millisecond)
		var patient atomic.Int32
		patient.Store(5)
		for i := range 30 {
			callers.Go(func() {
				for patient.Load() > 0 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(11+i%4)*time.Millisecond)
					ask(ctx)
					cancel()
					time.Sleep(time.Millisecond)
				}
			})
		}
		for range 5 {
			callers.Go(func() {
				defer patient.Add(-1)
				for range 20 {
					if err := ask(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		callers.Wait()
		if opened > 0 {
			t.Errorf("the breaker of a server that answers opened %d times", opened)
		}
	})
}
