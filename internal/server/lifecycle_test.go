package server_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/engine"
	"github.com/mayflycache/mayfly/internal/server"
)

// A thousand servers that were started, asked and closed leave nothing: no goroutine, under 64 KiB.
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
	goroutines, bytes := runtime.NumGoroutine(), heap()
	began := time.Now()
	for range 1000 {
		once()
	}
	t.Logf("%v for one", time.Since(began)/1000)
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines are left", n-goroutines)
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
