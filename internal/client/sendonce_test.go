package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

func Example_sendonce() {
	for _, err := range []error{
		nil,
		redis.Nil,
		io.EOF, // after the command was sent
		nodes.ErrCrowded,
		&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")},
	} {
		err = sendonce.Outcome(context.Background(), sendonce.Bounded{}, "key", err)
		fmt.Println(errors.Is(err, mayfly.ErrNotFound), errors.Is(err, mayfly.ErrUnknownOutcome), err)
	}
	// Output:
	// false false <nil>
	// true false not found
	// false true outcome unknown: the write was sent, its reply was lost: EOF
	// false false too many calls of this process are waiting for a connection to redis
	// false false dial tcp: connection refused
}
