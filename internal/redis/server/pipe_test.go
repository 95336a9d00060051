package server_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/server"
)

func TestAPipeIsBuffered(t *testing.T) {
	a, b := server.Pipe(1)
	defer a.Close()
	defer b.Close()
	if n, err := a.Write([]byte("hello")); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	buf := make([]byte, 3)
	for _, want := range []string{"hel", "lo"} {
		n, err := b.Read(buf)
		if got := string(buf[:n]); got != want || err != nil {
			t.Fatal(got, err)
		}
	}
	if n, err := b.Read(nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	if a.LocalAddr().String() != b.RemoteAddr().String() || a.RemoteAddr().String() != b.LocalAddr().String() || a.LocalAddr().Network() != "pipe" {
		t.Errorf("%v %v %v %v", a.LocalAddr(), b.RemoteAddr(), a.RemoteAddr(), b.LocalAddr())
	}
}

func TestAPipeCarriesMoreThanItHolds(t *testing.T) {
	a, b := server.Pipe(1)
	defer a.Close()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	go func() {
		for rest := data; len(rest) > 0; {
			n, _ := b.Write(rest[:min(len(rest), 1000+len(rest)%77777)])
			rest = rest[n:]
		}
		b.Close()
	}()
	got, err := io.ReadAll(a)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes of %d, %v", len(got), len(data), err)
	}
}

func TestClosingAPipe(t *testing.T) {
	a, b := server.Pipe(1)
	a.Write([]byte("last words"))
	a.Close()
	a.Close()
	if got, err := io.ReadAll(b); string(got) != "last words" || err != nil {
		t.Errorf("the peer reads %q, %v", got, err)
	}
	if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("the peer writes: %v", err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("reading: %v", err)
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("writing: %v", err)
	}
}

func TestHalfClosingAPipe(t *testing.T) {
	a, b := server.Pipe(1)
	defer a.Close()
	a.(interface{ CloseWrite() error }).CloseWrite()
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the peer reads: %v", err)
	}
	if _, err := a.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("writing: %v", err)
	}
	b.Write([]byte("still there"))
	b.Close()
	if got, err := io.ReadAll(a); string(got) != "still there" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestClosingWakesTheWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, closing := range []string{"own", "peer"} {
			a, b := server.Pipe(1)
			full := make([]byte, 1<<20)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := a.Read(full[:1]); err == nil {
					t.Errorf("%s: read without an error", closing)
				}
			})
			wg.Go(func() {
				if n, err := a.Write(full); err == nil || n == len(full) {
					t.Errorf("%s: wrote %d, %v", closing, n, err)
				}
			})
			synctest.Wait()
			if closing == "own" {
				a.Close()
			} else {
				b.Close()
			}
			wg.Wait()
			a.Close()
			b.Close()
		}
	})
}

func TestDeadlinesOfAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := server.Pipe(1)
		defer a.Close()
		defer b.Close()
		buf := make([]byte, 1<<20)
		expect := func(what string, after time.Duration, start time.Time, err error) {
			t.Helper()
			var timeout net.Error
			if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("%s: %v", what, err)
			}
			if d := time.Since(start); d != after {
				t.Errorf("%s: after %v, want %v", what, d, after)
			}
		}
		start := time.Now()
		a.SetReadDeadline(start.Add(time.Second))
		_, err := a.Read(buf)
		expect("read", time.Second, start, err)

		b.Write([]byte("x"))
		_, err = a.Read(buf)
		expect("read after the deadline, though there is something", time.Second, start, err)
		a.SetReadDeadline(time.Time{})
		if n, err := a.Read(buf); n != 1 || err != nil {
			t.Error(n, err)
		}

		// A deadline that moves in either direction during a wait.
		start = time.Now()
		a.SetReadDeadline(start.Add(time.Hour))
		time.AfterFunc(time.Second, func() { a.SetReadDeadline(start.Add(3 * time.Second)) })
		_, err = a.Read(buf)
		expect("read with a nearer deadline", 3*time.Second, start, err)
		start = time.Now()
		a.SetReadDeadline(start.Add(time.Second))
		time.AfterFunc(time.Second/2, func() { a.SetReadDeadline(start.Add(time.Hour)) })
		_, err = a.Read(buf)
		expect("read with a later deadline", time.Hour, start, err)
		start = time.Now()
		a.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Second/2, func() { a.SetReadDeadline(time.Unix(1, 0)) })
		_, err = a.Read(buf)
		expect("read that is called back", time.Second/2, start, err)

		start = time.Now()
		a.SetDeadline(start.Add(time.Second))
		n, err := a.Write(buf)
		expect("write", time.Second, start, err)
		if n == 0 || n == len(buf) {
			t.Errorf("wrote %d bytes", n)
		}
		_, err = a.Write([]byte("x"))
		expect("write after the deadline", time.Second, start, err)
	})
}

// Clients set a deadline for every command, which must not set a timer each time.
func TestDeadlinesAllocateNothing(t *testing.T) {
	a, b := server.Pipe(1)
	defer a.Close()
	defer b.Close()
	buf := make([]byte, 10)
	deadline := time.Now().Add(time.Hour)
	allocs := leastAllocs(func() {
		deadline = deadline.Add(time.Second)
		a.SetDeadline(deadline)
		a.Write(buf)
		b.Read(buf)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
