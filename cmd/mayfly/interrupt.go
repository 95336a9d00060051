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

// untilToldToEnd returns a context that ends when the program is told to end. The second time it is told, it ends at once.
func untilToldToEnd() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// lastWords is how long a command may take to clear up when it is told to end.
const lastWords = 300 * time.Millisecond

// shortlyAfter returns a context that ends lastWords after ctx.
func shortlyAfter(ctx context.Context) context.Context {
	late, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, end) })
	return late
}

var errToldToEnd = errors.New("it was told to end")

// endsWith makes the connections of a client break when ctx ends. While go-redis waits for an answer it heeds the deadline of a context, and not its
// end: a server that hangs would keep a command that was told to end.
func endsWith(ctx context.Context, o *redis.Options) {
	dial := redis.NewDialer(o)
	o.DialerRetries = 1 // each further one waits, and is in vain when ctx has ended
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
