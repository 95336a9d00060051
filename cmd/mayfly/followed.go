package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/journal"
	"github.com/mayflycache/mayfly/internal/redis/replica"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// followed is the master that mayfly serve follows; the zero value is none.
type followed struct {
	host           string
	port           int
	user, password string
	tls            *tls.Config
}

// parseFollowed reads host:port, or a URL.
func parseFollowed(text string) (f followed, err error) {
	addr := text
	if strings.Contains(text, "://") {
		o, err := parseURL("--replicaof", text)
		if err != nil {
			return f, err
		}
		addr, f.user, f.password, f.tls = o.Addr, o.Username, o.Password, o.TLSConfig
		if o.Network != "tcp" && o.Network != "" {
			return f, fmt.Errorf("a master is reached by TCP, as host:port")
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return f, err
	}
	if f.port, err = strconv.Atoi(port); err != nil || f.port < 1 || f.port > 65535 || host == "" {
		return f, fmt.Errorf("%q is not host:port", addr)
	}
	f.host = host
	return f, nil
}

func (f followed) String() string {
	if f.host == "" {
		return ""
	}
	return net.JoinHostPort(f.host, strconv.Itoa(f.port))
}

// follow makes the link of a server that will listen at l.
func (f followed) follow(s *server.Server, j *journal.Journal, l net.Listener) (*replica.Link, error) {
	o := replica.Options{Do: s.Do, Journal: j}
	if f.tls != nil {
		o.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			return (&tls.Dialer{Config: f.tls}).DialContext(ctx, "tcp", addr)
		}
	}
	link, err := replica.New(o)
	if err != nil || f.host == "" {
		return link, err
	}
	s.Do(func(_ int64, e *engine.Engine) {
		e.SetCredentials(f.user, f.password)
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			e.Listening(tcp.Port) // the master is told
		}
	})
	link.Follow(f.host, f.port)
	return link, nil
}

// tellOfLink prints when the link comes up, and each new problem, until ctx ends.
func tellOfLink(ctx context.Context, link *replica.Link, out io.Writer) {
	for last := ""; ctx.Err() == nil; {
		try, cancel := context.WithTimeout(ctx, time.Second)
		err := link.InStep(try)
		cancel()
		s := link.Status()
		switch {
		case s.Of == "":
			return
		case err == nil:
			fmt.Fprintf(out, "mayfly: in step with %s\n", s.Of)
			return
		case s.Problem != nil && s.Problem.Error() != last && ctx.Err() == nil:
			last = s.Problem.Error()
			fmt.Fprintf(out, "mayfly: not in step with %s: %v\n", s.Of, s.Problem)
		}
	}
}
