package httpcache_test

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// pipes is a network of one bubble.
type pipes struct {
	doors   map[string]chan net.Conn
	servers []*http.Server
	ways    []*http.Transport
}

func newPipes() *pipes { return &pipes{doors: map[string]chan net.Conn{}} }

// serve lets h answer requests to name.
func (p *pipes) serve(name string, h http.Handler) string {
	d := newDoorway()
	p.doors[name] = d.door
	srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	p.servers = append(p.servers, srv)
	go srv.Serve(d)
	return name
}

// client returns a transport that reaches all doors.
func (p *pipes) client() *http.Transport {
	way := &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr)
			near, far := net.Pipe()
			select {
			case p.doors[host] <- far:
				return near, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
	p.ways = append(p.ways, way)
	return way
}

// proxy is a ReverseProxy to a door.
func (p *pipes) proxy(name string) http.Handler {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: name})
	proxy.Transport, proxy.ErrorLog = p.client(), log.New(io.Discard, "", 0)
	return proxy
}

// close ends all servers and connections.
func (p *pipes) close() {
	for _, way := range p.ways {
		way.CloseIdleConnections()
	}
	for _, srv := range p.servers {
		srv.Close()
	}
}

// doorway is a net.Listener of pipes.
type doorway struct {
	door chan net.Conn
	once sync.Once
	shut chan struct{}
}

func newDoorway() *doorway { return &doorway{door: make(chan net.Conn), shut: make(chan struct{})} }

func (d *doorway) Accept() (net.Conn, error) {
	select {
	case c := <-d.door:
		return c, nil
	case <-d.shut:
		return nil, net.ErrClosed
	}
}
func (d *doorway) Close() error   { d.once.Do(func() { close(d.shut) }); return nil }
func (d *doorway) Addr() net.Addr { return &net.UnixAddr{Name: "door"} }

// duplex is one end of a connection that can be closed for writing alone, like TCP's.
type duplex struct {
	net.Conn // reads
	out      net.Conn
}

func newDuplex() (near, far *duplex) {
	nearIn, farOut := net.Pipe()
	farIn, nearOut := net.Pipe()
	return &duplex{nearIn, nearOut}, &duplex{farIn, farOut}
}

func (d *duplex) Write(b []byte) (int, error)        { return d.out.Write(b) }
func (d *duplex) SetWriteDeadline(t time.Time) error { return d.out.SetWriteDeadline(t) }
func (d *duplex) CloseWrite() error                  { return d.out.Close() }
func (d *duplex) Close() error                       { d.out.Close(); return d.Conn.Close() }
