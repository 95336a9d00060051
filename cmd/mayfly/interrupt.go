package main

import (
	"context"
	"errors"
	"net"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// untilToldToEnd returns a context that ends at the first SIGINT or SIGTERM. The second one ends the program at once.
func untilToldToEnd() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// lastWords is how long an interrupted command may take to clean up.
const lastWords = 300 * time.Millisecond

// shortlyAfter returns a context that ends lastWords after ctx.
func shortlyAfter(ctx context.Context) context.Context {
	late, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, end) })
	return late
}

var errToldToEnd = errors.New("interrupted")

// endsWith breaks a client's connections when ctx ends. While go-redis waits for a reply it heeds the deadline of a context but not its
// cancellation: without this a hanging server would keep an interrupted command from ending.
func endsWith(ctx context.Context, o *redis.Options) {
	dial := redis.NewDialer(o)
	o.DialerRetries = 1 // retries wait, even when ctx has ended and they cannot succeed
	o.Dialer = func(dialing context.Context, network, addr string) (net.Conn, error) {
		dialing, cancel := context.WithCancel(dialing)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		conn, err := dial(dialing, network, addr)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
}
