package sliding_test

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

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// If an Update's reply is lost, and somebody else updates the value before it is sent again, it is not done twice: its caller gets
// ErrUnknownOutcome.
func TestALostReplyAndAnotherUpdate(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				ctx := t.Context()
				o := srv.Options()
				var dials atomic.Int32
				dial := o.Dialer
				o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if dials.Add(1) > 1 { // so that the others come in between
						time.Sleep(time.Second)
					}
					return dial(ctx, network, addr)
				}
				slow := redis.NewClient(o)
				defer slow.Close()
				s, others := mayfly.Must(sliding.New(namespace(slow), way.opt)), mayfly.Must(sliding.New(namespace(srv.Client()), way.opt))
				one := func(c cart) (cart, error) { c.Count++; return c, nil }
				s.Create(ctx, "ada", cart{})
				if _, err := s.Update(ctx, "ada", one); err != nil { // the script is known
					t.Fatal(err)
				}
				srv.DropReply("evalsha")
				lost := make(chan error)
				go func() {
					_, err := s.Update(ctx, "ada", one)
					lost <- err
				}()
				synctest.Wait()
				if _, err := others.Update(ctx, "ada", one); err != nil {
					t.Fatal(err)
				}
				err := <-lost
				if c, _ := others.Peek(ctx, "ada"); c.Count != 3 || !errors.Is(err, mayfly.ErrUnknownOutcome) {
					t.Errorf("three updates made it %d, and the one whose reply was lost says %v", c.Count, err)
				}
			})
		})
	}
}

// An Update during a Rotate reaches the value under its new key.
func TestRotateLosesNoUpdate(t *testing.T) {
	duringRotate(t, func(others *sliding.Store[string, cart]) error {
		_, err := others.Update(t.Context(), "old", func(c cart) (cart, error) { c.Count++; return c, nil })
		return err
	}, func(t *testing.T, others *sliding.Store[string, cart], rotated error) {
		want(t, rotated, nil)
		if c, err := others.Peek(t.Context(), "new"); c.Count != 2 || err != nil {
			t.Errorf("it is %+v, %v", c, err)
		}
		_, err := others.Peek(t.Context(), "old")
		want(t, err, mayfly.ErrNotFound)
	})
}

// A value deleted during a Rotate, as by a logout, is not under its new key either.
func TestRotateLosesNoDelete(t *testing.T) {
	duringRotate(t, func(others *sliding.Store[string, cart]) error {
		return others.Delete(t.Context(), "old")
	}, func(t *testing.T, others *sliding.Store[string, cart], rotated error) {
		want(t, rotated, mayfly.ErrNotFound)
		_, err := others.Peek(t.Context(), "new")
		want(t, err, mayfly.ErrNotFound)
	})
}

// duringRotate rotates a value from old to new in each way, has other processes do something meanwhile, and then looks.
func duringRotate(t *testing.T, do func(others *sliding.Store[string, cart]) error, look func(t *testing.T, others *sliding.Store[string, cart], rotated error)) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			duringRotateOnce(t, way.opt, do, func(others *sliding.Store[string, cart], rotated error) { look(t, others, rotated) })
		})
	}
}

func duringRotateOnce(t *testing.T, o sliding.Options, do func(others *sliding.Store[string, cart]) error, look func(others *sliding.Store[string, cart], rotated error)) {
	srv := redistest.Start(t)
	others := mayfly.Must(sliding.New(namespace(srv.Client()), o))
	rdb := redis.NewClient(srv.Options())
	defer rdb.Close()
	var once sync.Once
	rdb.AddHook(between(func() {
		once.Do(func() { want(t, do(others), nil) })
	}))
	want(t, others.Create(t.Context(), "old", cart{Count: 1}), nil)
	look(others, mayfly.Must(sliding.New(namespace(rdb), o)).Rotate(t.Context(), "old", "new"))
}

// between is a hook that does something after each command.
type between func()

func (between) DialHook(next redis.DialHook) redis.DialHook { return next }
func (between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (b between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if name := cmd.Name(); err == nil && (name == "get" || name == "evalsha" || name == "eval") {
			b()
		}
		return err
	}
}
