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

// An Update whose reply is lost, and whose value somebody else updates before it is sent again, is not done twice: its caller
// is told that nobody knows.
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

// An Update that is done while its value is on the way to another key is on the new one, too.
func TestRotateLosesNoUpdate(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			srv := redistest.Start(t)
			ctx := t.Context()
			others := mayfly.Must(sliding.New(namespace(srv.Client()), way.opt))
			rdb := redis.NewClient(srv.Options())
			defer rdb.Close()
			var update sync.Once
			rdb.AddHook(between(func() {
				update.Do(func() {
					if _, err := others.Update(ctx, "old", func(c cart) (cart, error) { c.Count++; return c, nil }); err != nil {
						t.Error(err)
					}
				})
			}))
			if err := others.Create(ctx, "old", cart{Count: 1}); err != nil {
				t.Fatal(err)
			}
			if err := mayfly.Must(sliding.New(namespace(rdb), way.opt)).Rotate(ctx, "old", "new"); err != nil {
				t.Fatal(err)
			}
			if c, err := others.Peek(ctx, "new"); c.Count != 2 || err != nil {
				t.Errorf("it is %+v, %v", c, err)
			}
			_, err := others.Peek(ctx, "old")
			want(t, err, mayfly.ErrNotFound)
		})
	}
}

// A value that is deleted while it is on the way to another key, as by a logout, is not there either.
func TestRotateLosesNoDelete(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			srv := redistest.Start(t)
			ctx := t.Context()
			others := mayfly.Must(sliding.New(namespace(srv.Client()), way.opt))
			rdb := redis.NewClient(srv.Options())
			defer rdb.Close()
			var end sync.Once
			rdb.AddHook(between(func() {
				end.Do(func() {
					if err := others.Delete(ctx, "old"); err != nil {
						t.Error(err)
					}
				})
			}))
			if err := others.Create(ctx, "old", cart{Count: 1}); err != nil {
				t.Fatal(err)
			}
			want(t, mayfly.Must(sliding.New(namespace(rdb), way.opt)).Rotate(ctx, "old", "new"), mayfly.ErrNotFound)
			_, err := others.Peek(ctx, "new")
			want(t, err, mayfly.ErrNotFound)
		})
	}
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
