package server_test

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// from is a connection with a made-up remote address.
type from struct {
	net.Conn
	addr net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.addr }

// As in Redis, a client from another host gets the reason and is disconnected, unless there is a password or protected-mode is off.
func TestProtectedMode(t *testing.T) {
	far, near := &net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 5}, &net.TCPAddr{IP: net.ParseIP("::ffff:127.0.0.1"), Port: 5}
	for _, c := range []struct {
		addr    net.Addr
		options engine.Options
		set     string
		let     bool
	}{
		{far, engine.Options{Protected: true}, "", false},
		{near, engine.Options{Protected: true}, "", true},
		{&net.UnixAddr{Name: "@"}, engine.Options{Protected: true}, "", true},
		{far, engine.Options{}, "", true},
		{far, engine.Options{Protected: true, Password: "sesame"}, "", true},
		{far, engine.Options{Protected: true}, "CONFIG SET protected-mode no", true},
		{far, engine.Options{}, "CONFIG SET protected-mode yes", false},
		{far, engine.Options{Protected: true}, "CONFIG SET requirepass sesame", true},
	} {
		s := start(t, c.options, server.Options{})
		if c.set != "" {
			dial(t, s).want(c.set, "OK")
		}
		theirs, ours := net.Pipe()
		defer theirs.Close()
		s.ServeConn(from{ours, c.addr})
		go theirs.Write([]byte("PING\r\n"))
		reply, _ := bufio.NewReader(theirs).ReadString('\n')
		if denied := strings.HasPrefix(reply, "-DENIED Redis is running in protected mode"); denied == c.let {
			t.Errorf("%v of %+v, %s: %.60q", c.addr, c.options, c.set, reply)
		}
	}
}
