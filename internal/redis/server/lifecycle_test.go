package server_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// A thousand servers that are started, asked and closed leave nothing: no goroutine, and less than 64 KiB.
func TestServersLeaveNothing(t *testing.T) {
	once := func() {
		s, err := server.New(engine.New(engine.Options{}), server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		conn, err := s.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, Conn: conn}
		c.send("SET k v PX 100000", "SUBSCRIBE c", "PING")
		if _, err := conn.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	for range 10 {
		once()
	}
	bytes := heap()
	began := time.Now()
	for range 1000 {
		once()
	}
	t.Logf("%v for one", time.Since(began)/1000)
	if stacks := left(); len(stacks) > 0 {
		t.Errorf("%d goroutines are left, such as\n%s", len(stacks), stacks[0])
	}
	if n := heap() - bytes; n > 64<<10 {
		t.Errorf("%d bytes are left", n)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A reply of 64 MB exists only once, whether the client reads slowly or not, apart from the value itself.
func TestALargeReplyIsHeldOnce(t *testing.T) {
	const size = 16 << 20
	s := start(t, engine.Options{}, server.Options{})
	c := dial(t, s)
	fmt.Fprintf(c, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n", size)
	piece := make([]byte, 1<<20)
	for range size / len(piece) {
		c.Write(piece)
	}
	fmt.Fprint(c, "\r\nPING\r\n")
	io.CopyN(io.Discard, c, int64(len("+OK\r\n+PONG\r\n")))

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fmt.Fprint(c, "GET k\r\n")
	io.CopyN(io.Discard, c, size+int64(len("$16777216\r\n\r\n")))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > size+size/16 {
		t.Errorf("%d bytes allocated for a reply of %d", n, size)
	}
	c.want("PING", "PONG")
}

// leastAllocs is the average number of allocations of f, in the best of 21 rounds, since other goroutines of the process allocate too.
func leastAllocs(f func()) float64 {
	least := testing.AllocsPerRun(100, f)
	for range 20 {
		least = min(least, testing.AllocsPerRun(100, f))
	}
	return least
}

func TestServingAllocatesNothing(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	c := dial(t, s)
	c.want("SET k v", "OK")
	batch := []byte(strings.Repeat("*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n", 50))
	replies := make([]byte, 50*len("$1\r\nv\r\n+PONG\r\n"))
	allocs := leastAllocs(func() {
		c.Write(batch)
		if _, err := io.ReadFull(c, replies); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 0 {
		t.Errorf("%v allocations for 100 commands", allocs)
	}
}
