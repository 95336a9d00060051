package replica_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/rdb"
	"github.com/mayflycache/mayfly/internal/redis/replica"
)

// saying is a connection to a master that sends a fixed stream, whatever it is asked.
type saying struct {
	net.Conn
	io.Reader
}

func (s saying) Read(b []byte) (int, error)       { return s.Reader.Read(b) }
func (s saying) Write(b []byte) (int, error)      { return len(b), nil }
func (s saying) Close() error                     { return nil }
func (s saying) SetReadDeadline(time.Time) error  { return nil }
func (s saying) SetWriteDeadline(time.Time) error { return nil }

// Whatever a master sends, a replica keeps its own data or adopts a whole snapshot, and can still be promoted.
func FuzzMaster(f *testing.F) {
	good := snapshot(rdb.TypeString)
	whole := fmt.Sprintf("$%d\r\n%s", len(good), good)
	f.Add([]byte(whole + "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*1\r\n$4\r\nPING\r\n"))
	f.Add([]byte("\n$EOF:" + id + "\r\n" + good + id + "*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n*1\r\n$4\r\nEXEC\r\n"))
	f.Add([]byte(whole + "*2\r\n$6\r\nSELECT\r\n$2\r\n99\r\n"))
	f.Add([]byte("$EOF:" + id + "\r\n" + snapshot(21) + id))
	f.Fuzz(func(t *testing.T, says []byte) {
		e := engine.New(engine.Options{Seed: 1})
		own := e.NewSession(engine.SessionOptions{Trusted: true})
		lock := make(chan struct{}, 1)
		do := func(g func(int64, *engine.Engine)) {
			lock <- struct{}{}
			defer func() { <-lock }()
			g(1_800_000_000_000_000, e)
		}
		ended := make(chan struct{})
		dials := 0
		link, err := replica.New(replica.Options{Do: do, Retry: time.Nanosecond, Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			if dials++; dials > 1 {
				close(ended)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			greeting := "+PONG\r\n+OK\r\n+OK\r\n+FULLRESYNC " + id + " 1\r\n"
			return saying{Reader: io.MultiReader(bytes.NewReader([]byte(greeting)), bytes.NewReader(says))}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		do(func(now int64, e *engine.Engine) { e.Do(now, own, [][]byte{[]byte("SET"), []byte("own"), []byte("v")}) })
		link.Follow("master", 1)
		<-ended
		if s := link.Status(); s.Problem == nil || s.InStep {
			t.Errorf("%+v", s)
		}
		synced := link.Status().Synced
		if err := link.Promote(); err != nil {
			t.Error(err)
		}
		link.Close()
		do(func(now int64, e *engine.Engine) {
			if n := e.Figures(now).Keys; !synced && n != 1 {
				t.Errorf("%d keys, and nothing was taken over", n)
			}
			own.Out.Take(nil)
			e.Do(now, own, [][]byte{[]byte("SET"), []byte("k"), []byte("v")})
			if got := string(own.Out.Bytes()); got != "+OK\r\n" {
				t.Errorf("promoted: %q", got)
			}
		})
	})
}
