package sliding_test

import (
	"context"
	"errors"
	"net"
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
