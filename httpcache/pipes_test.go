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
)

// pipes is a network of one bubble.
type pipes struct {
	doors   map[string]chan net.Conn
	servers []*http.Server
	ways    []*http.Transport
}

func newPipes() *pipes { return &pipes{doors: map[string]chan net.Conn{}} }

// serve lets h answer what comes to name.
func (p *pipes) serve(name string, h http.Handler) string {
	door := make(chan net.Conn)
	p.doors[name] = door
	srv := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	p.servers = append(p.servers, srv)
	go srv.Serve(&doorway{door: door, shut: make(chan struct{})})
	return name
}

// client returns a way to all doors.
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
