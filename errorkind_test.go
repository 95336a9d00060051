package mayfly_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
)

func ExampleEvent_ErrorKind() {
	e := mayfly.Event{Kind: mayfly.KindBackend, Err: fmt.Errorf("load the page: %w", context.DeadlineExceeded)}
	fmt.Println(e.ErrorKind())
	// Output: timeout
}

type replied string

func (r replied) Error() string { return string(r) }
func (replied) RedisError()     {}

// Text that patterns and users wrap around an error of Redis does not change its kind.
func TestErrorKind(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for kind, errs := range map[string][]error{
		"other":       {nil, errors.New("OOM, says somebody else")},
		"crowded":     {mayfly.ErrCrowded},
		"timeout":     {context.DeadlineExceeded, os.ErrDeadlineExceeded},
		"canceled":    {context.Canceled},
		"network":     {dial, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed},
		"closed":      {redis.ErrClosed},
		"oom":         {replied("OOM command not allowed")},
		"auth":        {replied("NOAUTH no"), replied("WRONGPASS no"), replied("NOPERM no")},
		"cluster":     {replied("MOVED 1 a:1"), replied("ASK 1 a:1"), replied("CLUSTERDOWN no"), replied("TRYAGAIN no"), replied("CROSSSLOT no")},
		"replication": {replied("MASTERDOWN no"), replied("NOREPLICAS no")},
		"readonly":    {replied("READONLY no")},
		"loading":     {replied("LOADING no")},
		"wrong_type":  {replied("WRONGTYPE no")},
		"misconf":     {replied("MISCONF no")},
		"busy":        {replied("BUSY no")},
		"script":      {replied("NOSCRIPT no")},
		"reply":       {replied("ERR no"), replied("OOMPH")},
	} {
		for _, err := range errs {
			wrapped := err
			if err != nil {
				wrapped = fmt.Errorf("sliding: get %q: %w", "LOADING 7", err)
			}
			if got := (mayfly.Event{Err: wrapped}).ErrorKind(); got != kind {
				t.Errorf("%v is %q, not %q", wrapped, got, kind)
			}
			if got := (mayfly.Event{Err: err}).ErrorKind(); got != kind {
				t.Errorf("%v is %q, not %q", err, got, kind)
			}
		}
	}
}
