// Package proxy stands between a client and its Redis, and does to single requests what networks do: it holds them back after their client
// gave up, delays them, cuts connections before or after the server executed them, drops or truncates replies. It is for tests only.
//
//	p := proxy.Start(t, srv.Addr())
//	rdb := redis.NewClient(&redis.Options{Addr: p.Addr()})
//
//	held := p.Hold("set", "user:7") // the next SET that mentions user:7 is not delivered
//	go rdb.Set(ctx, "user:7", "old", time.Minute)
//	<-held.Arrived()
//	held.Cut()     // its client loses the connection, and sends the SET again on another: that one is delivered
//	...
//	held.Release() // now the first one arrives at the server
//	<-held.Done()  // which has answered it
//
// A request is one command, or a transaction. Whatever follows a held request on its connection waits behind it, as bytes of TCP do. A late
// request is delivered on the server connection that it was meant for. That connection outlives the client's, so earlier commands on it, such as
// SELECT, still apply.
//
// One Proxy stands in front of any number of servers, with an address for each. [Proxy.Dial] is the dialer for a client that finds servers by
// itself, such as a cluster client:
//
//	p := proxy.Start(t)
//	o := cluster.Options()
//	o.Dialer = p.Dial
//
// Faults apply to requests, whichever server they are for. Replies are matched with requests by counting, so the answer to a certain request
// can be dropped; on a connection that has subscribed to channels this is impossible, and replies pass untouched from then on.
package proxy

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Proxy passes requests on, except those that meet a fault. It is safe for concurrent use.
type Proxy struct {
	first string // the server of Addr
	works sync.WaitGroup

	mu     sync.Mutex              // guards the rest
	nodes  map[string]net.Listener // by server address
	links  map[*link]bool
	faults []*Fault // faults still waiting for their request, oldest first
	random *random  // nil: no random faults
	timers map[*time.Timer]bool
	log    []string
	made   int // number of links so far
	closed bool
}

// Start starts a proxy for servers; it is closed with the test. When the test fails, it shows the requests that passed through.
func Start(t testing.TB, servers ...string) *Proxy {
	t.Helper()
	p, err := Run(servers...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		if t.Failed() {
			t.Logf("through the proxy, the latest last:\n\t%s%s", strings.Join(p.Log(), "\n\t"), p.seed())
		}
	})
	return p
}

// Run returns a proxy outside of any test. The caller has to Close it.
func Run(servers ...string) (*Proxy, error) {
	p := &Proxy{nodes: map[string]net.Listener{}, links: map[*link]bool{}, timers: map[*time.Timer]bool{}}
	for _, server := range servers {
		if _, err := p.node(server); err != nil {
			p.Close()
			return nil, err
		}
	}
	if len(servers) > 0 {
		p.first = servers[0]
	}
	return p, nil
}

// Addr returns the proxy's address for the first of its servers.
func (p *Proxy) Addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.nodes[p.first].Addr().String()
}

// Dial connects to the proxy's address for the server at addr, which it opens if needed. It is a dialer for go-redis's options.
func (p *Proxy) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l, err := p.node(addr)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, network, l.Addr().String())
}

// node returns the listener for the server at addr.
func (p *Proxy) node(addr string) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.nodes[addr]; l != nil {
		return l, nil
	}
	if p.closed {
		return nil, net.ErrClosed
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.nodes[addr] = l
	p.works.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.works.Go(func() { p.serve(client, addr) })
		}
	})
	return l, nil
}

// serve passes on the requests and replies of one client.
func (p *Proxy) serve(client net.Conn, addr string) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	l := &link{p: p, client: client, server: server}
	p.mu.Lock()
	p.made++
	l.number = p.made
	p.links[l] = true
	closed := p.closed
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	}()
	if closed {
		return
	}
	p.works.Go(l.requests)
	l.replies()
}

// Cut cuts all clients' connections. New ones are accepted, and held requests still arrive when they are released.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.client.Close()
	}
}

// Log returns the latest 500 requests, without the commands by which connections begin, each with the number of its connection and what was
// done to it.
func (p *Proxy) Log() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

// ClearLog empties the log.
func (p *Proxy) ClearLog() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = nil
}

const logged = 500

func (p *Proxy) noteLocked(l *link, commands [][]string, f *Fault) {
	if handshake[commands[0][0]] {
		return
	}
	line := fmt.Sprintf("%d %q", l.number, slices.Concat(commands...))
	if len(line) > 200 {
		line = line[:200] + "..."
	}
	if f != nil {
		line += " -> " + f.does.String()
	}
	p.log = append(p.log, line)
	p.log = p.log[max(len(p.log)-logged, 0):]
}

// handshake are the commands by which clients introduce themselves and find their way; random faults do not apply to them.
var handshake = map[string]bool{"hello": true, "auth": true, "select": true, "client": true, "cluster": true, "command": true, "readonly": true}

// later calls f after d, unless the proxy is closed before.
func (p *Proxy) later(d time.Duration, f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.works.Add(1)
	var timer *time.Timer
	timer = time.AfterFunc(d, func() {
		defer p.works.Done()
		p.mu.Lock()
		delete(p.timers, timer)
		p.mu.Unlock()
		f()
	})
	p.timers[timer] = true
}

// Close cuts all connections, drops held requests, and returns when no goroutine is left. Closing twice is fine.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for _, l := range p.nodes {
		l.Close()
	}
	for l := range p.links {
		l.client.Close()
		l.server.Close()
	}
	for timer := range p.timers {
		if timer.Stop() {
			delete(p.timers, timer)
			p.works.Done()
		}
	}
	p.mu.Unlock()
	p.works.Wait()
}
