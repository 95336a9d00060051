package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	chistampede "github.com/go-chi/stampede"
	"github.com/redis/go-redis/v9"
	victorspringer "github.com/victorspringer/http-cache"
	"github.com/victorspringer/http-cache/adapter/memory"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
)

// servePages is the argument that makes this program a server of one page behind many caches.
const servePages = "serve-pages"

// thePage is 10 KiB of HTML.
var thePage = []byte(strings.Repeat("<p>some text</p>", 640))

func pageHeader(h http.Header) {
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(thePage)))
	h.Set("Cache-Control", "public, max-age=3600")
	h.Set("Etag", `"5f3a-1"`)
	h.Set("Last-Modified", "Sat, 21 Nov 2026 09:00:00 GMT")
}

// hitHeader is the header of a hit: the page's own header must be compared with that of a handler that sends as much.
func hitHeader(h http.Header) {
	pageHeader(h)
	h.Set("Age", "0")
	h.Set("Date", "Sat, 21 Nov 2026 09:00:00 GMT")
	h.Set("Cache-Status", `mayfly; hit; ttl=3600; key="http://127.0.0.1:12345/mayfly/local"`)
}

// cachedPages are the ways to serve the page. The first of each kind is the yardstick for the others.
var cachedPages = []struct {
	path, name string
	bound      float64
	base       string
}{
	{"/handler", "a handler with the page in memory", 0, "/handler"},
	{"/mayfly/local", "mayfly, local tier", 1.25, "/handler"},
	{"/victorspringer/memory", "victorspringer/http-cache, memory", 0, "/handler"},
	{"/stampede", "go-chi/stampede", 0, "/handler"},
	{"/redis", "a handler that GETs the page by go-redis", 0, "/redis"},
	{"/mayfly/redis", "mayfly, Redis only", 1, "/redis"},
	{"/victorspringer/redis", "victorspringer/http-cache, an adapter over go-redis", 0, "/redis"},
}

// overRedis is the peer's adapter for Redis, over the go-redis that all the others use.
type overRedis struct{ rdb *redis.Client }

func (a overRedis) Get(key uint64) ([]byte, bool) {
	b, err := a.rdb.Get(context.Background(), victorspringer.KeyAsString(key)).Bytes()
	return b, err == nil
}

func (a overRedis) Set(key uint64, response []byte, expiration time.Time) {
	a.rdb.Set(context.Background(), victorspringer.KeyAsString(key), response, time.Until(expiration))
}

func (a overRedis) Release(key uint64) {
	a.rdb.Del(context.Background(), victorspringer.KeyAsString(key))
}

// servePagesChild serves every way, and what it has spent so far.
func servePagesChild(redisAddr string) {
	ctx, rdb := context.Background(), tuned(redisAddr)
	must(rdb.Set(ctx, "page", thePage, time.Hour).Result())
	local := must(mayfly.OpenLocal(ctx, mayfly.LocalOptions{Redis: rdb, Prefixes: []string{"near:"}, MaxBytes: 1 << 20}))
	pages := func(prefix string, l *mayfly.Local) func(http.Handler) http.Handler {
		return must(httpcache.New(mayfly.Namespace[string, []byte]{Name: "pages", Redis: rdb, Prefix: prefix, TTL: time.Hour, Local: l}, httpcache.Options{
			RedisTimeout: 10 * time.Second,
		})).Handler
	}
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pageHeader(w.Header())
		w.Write(thePage)
	})
	peer := func(a victorspringer.Adapter) http.Handler {
		return must(victorspringer.NewClient(victorspringer.ClientWithAdapter(a), victorspringer.ClientWithTTL(time.Hour))).Middleware(origin)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/handler", func(w http.ResponseWriter, r *http.Request) {
		hitHeader(w.Header())
		w.Write(thePage)
	})
	mux.HandleFunc("/redis", func(w http.ResponseWriter, r *http.Request) {
		b, err := rdb.Get(r.Context(), "page").Bytes()
		if err != nil {
			panic(err)
		}
		hitHeader(w.Header())
		w.Write(b)
	})
	mux.Handle("/mayfly/local", pages("near:", local)(origin))
	mux.Handle("/mayfly/redis", pages("far:", nil)(origin))
	mux.Handle("/victorspringer/memory", peer(must(memory.NewAdapter(memory.AdapterWithAlgorithm(memory.LRU), memory.AdapterWithCapacity(1000)))))
	mux.Handle("/victorspringer/redis", peer(overRedis{rdb}))
	mux.Handle("/stampede", chistampede.Handler(1000, time.Hour)(origin))
	mux.HandleFunc("/spent", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "gc" {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Fprintf(w, "%d %d", cpuTime(), m.Mallocs)
	})
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Println(l.Addr())
	go func() { // ends with its parent
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	panic(http.Serve(l, mux))
}

// browser sends requests over one connection, with as little work of its own as possible.
type browser struct {
	conn net.Conn
	in   *bufio.Reader
}

func (b *browser) get(path string) string {
	fmt.Fprintf(b.conn, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: text/html\r\n\r\n", path)
	res := must(http.ReadResponse(b.in, nil))
	defer res.Body.Close()
	return string(must(io.ReadAll(res.Body)))
}

// spent returns what the server has spent: processor time and allocations.
func (b *browser) spent(query string) (cpu, mallocs float64) {
	must(fmt.Sscan(b.get("/spent"+query), &cpu, &mallocs))
	return cpu, mallocs
}

// httpCaches measures what a hit costs the server, next to handlers that do the same by hand.
func httpCaches(w io.Writer, o settings) {
	srv := startRedis()
	defer srv.stop()
	cmd := exec.Command(must(os.Executable()), servePages, srv.addr)
	cmd.Stderr = os.Stderr
	stdin := must(cmd.StdinPipe())
	out := bufio.NewReader(must(cmd.StdoutPipe()))
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	defer func() { stdin.Close(); cmd.Wait() }()
	addr := strings.TrimSpace(must(out.ReadString('\n')))
	browsers := make([]*browser, 32)
	for i := range browsers {
		conn := must(net.Dial("tcp", addr))
		defer conn.Close()
		browsers[i] = &browser{conn, bufio.NewReader(conn)}
	}
	for _, p := range cachedPages {
		for range 20 { // a miss, a hit in Redis that fills the tier, local hits
			if browsers[0].get(p.path) != string(thePage) {
				panic("another page from " + p.path)
			}
		}
	}
	defer keepBusy()()
	rounds, turns, turn := o.scale(15, 2), o.scale(8, 1), o.scale(512, 192)
	fmt.Fprintf(w, `A page of 10 KiB over loopback: processor time of the server per request, net/http included, median of %d interleaved rounds of
%d requests; the ratio is the median of those in one round. The handlers that they are measured by send the same header as a hit of mayfly. What the
peers send is less: neither has Age or Cache-Status, and neither asks whether the page may be cached at all. Other programs keep the processors
busy meanwhile, at the lowest priority: on idle ones the waking up of threads is most of what one connection costs.
`, rounds, turns*turn)
	for _, n := range []int{1, len(browsers)} {
		fmt.Fprintf(w, "\n| %d at once | bound | CPU | ratio | allocations more |\n| --- | --- | --- | --- | --- |\n", n)
		cpu, allocs := compare(browsers[:n], rounds, turns, turn)
		for _, p := range cachedPages {
			bound := "-"
			if p.bound > 0 {
				bound = fmt.Sprint(p.bound)
			}
			fmt.Fprintf(w, "| %s | %s | %.1f us | %s | %+.0f |\n", p.name, bound, median(cpu[p.path])/1e3,
				verdict(ratio(cpu[p.path], cpu[p.base]), p.bound, false), allocs[p.path]-allocs[p.base])
		}
	}
}

// compare has all browsers send requests simultaneously, way by way. It returns the server's cost per request in each round, and the allocations of
// the last turn.
func compare(browsers []*browser, rounds, turns, turn int) (cpu map[string][]float64, allocs map[string]float64) {
	cpu, allocs = map[string][]float64{}, map[string]float64{}
	for range rounds {
		spent := map[string]float64{}
		for range turns { // short turns, so that other programs disturb all ways alike
			for _, p := range cachedPages {
				began, mallocs := browsers[0].spent("?gc")
				var asked sync.WaitGroup
				for _, b := range browsers {
					asked.Go(func() {
						for range turn / len(browsers) {
							b.get(p.path)
						}
					})
				}
				asked.Wait()
				ended, after := browsers[0].spent("")
				spent[p.path] += ended - began
				allocs[p.path] = (after - mallocs) / float64(turn)
			}
		}
		for path, ns := range spent {
			cpu[path] = append(cpu[path], ns/float64(turns*turn))
		}
	}
	return cpu, allocs
}
