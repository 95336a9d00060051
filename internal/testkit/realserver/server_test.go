package realserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/wire"
)

// eachFlavour runs f for every kind of server, in parallel.
func eachFlavour(t *testing.T, f func(t *testing.T, o Options)) {
	for flavour := Redis8; flavour <= Valkey; flavour++ {
		t.Run(flavour.String(), func(t *testing.T) {
			t.Parallel()
			f(t, Options{Flavour: flavour})
		})
	}
}

func TestServer(t *testing.T) {
	eachFlavour(t, testServer)
}

func testServer(t *testing.T, o Options) {
	s := Start(t, o)
	if !flavours[o.Flavour].fits(s.Version()) {
		t.Errorf("Version() = %v, want %v", s.Version(), o.Flavour)
	}
	patient, err := wire.Dial(t.Context(), s.Addr(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer patient.Close()
	if _, err := patient.Do("SET", "k", "v", "EX", "3600"); err != nil {
		t.Fatal(err)
	}

	s.Pause()
	hasty, err := wire.Dial(t.Context(), s.Addr(), 50*time.Millisecond) // for asking a server that surely does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	var timeout net.Error
	if _, err := hasty.Do("GET", "k"); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("a paused server answers %v, want a timeout", err)
	}
	s.Resume()
	if v, err := patient.Do("GET", "k"); err != nil || v.Text != "v" {
		t.Errorf("a resumed server answers %q, %v", v.Text, err)
	}

	addr := s.Addr()
	for name, end := range map[string]func(){"Kill": s.Kill, "Stop": s.Stop, "Pause and Stop": func() { s.Pause(); s.Stop() }} {
		end()
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Errorf("after %s somebody still listens at %s", name, addr)
		}
		end = s.Kill
		end() // a second call is fine
		s.Restart()
		if s.Addr() != addr {
			t.Errorf("after a restart it is at %s, was at %s", s.Addr(), addr)
		}
		if v := s.Do("GET", "k"); !v.Null {
			t.Errorf("after %s and Restart: %q, want no key", name, v.Text)
		}
	}
}

func TestServerIsConfiguredForTests(t *testing.T) {
	s := Start(t, Options{Config: []string{"maxmemory 5mb"}})
	for name, want := range map[string]string{
		"maxmemory": "5242880", "save": "", "appendonly": "no", "bind": "127.0.0.1", "enable-debug-command": "local",
		"protected-mode": "yes",
	} {
		if got := s.Do("CONFIG", "GET", name).List; len(got) != 2 || got[1].Text != want {
			t.Errorf("CONFIG GET %s = %v, want %q", name, got, want)
		}
	}
}

func TestAWrongConfigurationIsShownWithTheLog(t *testing.T) {
	v := watch(t, func(t testing.TB) { Start(t, Options{Config: []string{"maxmemory lots"}}) })
	if v.skipped != "" {
		t.Skip(v.skipped)
	}
	if !strings.Contains(v.failed, "did not start: exit status 1") || !strings.Contains(v.logged, "maxmemory lots") {
		t.Errorf("failed with %q and the log %q", v.failed, v.logged)
	}
}

// The port is free when it is chosen, but may be taken when the server wants it: then Start takes another one. It must not mistake another
// server's PONG for its own.
func TestAnotherServerAtThePortIsNoticed(t *testing.T) {
	eachFlavour(t, testPortTaken)
}

func testPortTaken(t *testing.T, o Options) {
	s := Start(t, o)
	s.Kill()
	l, err := net.Listen("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "+PONG\r\n$14\r\nprocess_id:1\r\n\r\n")
			conn.Close()
		}
	}()
	if err := s.run(); !errors.Is(err, errPortTaken) {
		t.Errorf("run = %v, want %v", err, errPortTaken)
	}
}

func TestTool(t *testing.T) {
	out, err := exec.Command(Tool(t, Redis8, "redis-check-aof"), "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "v=") {
		t.Errorf("redis-check-aof --version: %s, %v", out, err)
	}
}

// TestChild is the other process of TestNoServerSurvivesItsTests.
func TestChild(t *testing.T) {
	end := os.Getenv("REALSERVER_CHILD")
	if end == "" {
		t.Skip("not a test of its own")
	}
	s := Start(t, Options{})
	fmt.Printf("\naddr %s\ndir %s\n", s.Addr(), s.dir)
	switch end {
	case "panic":
		panic("as wanted")
	case "panic elsewhere": // no cleanup runs
		go panic("as wanted")
		select {}
	case "fail":
		t.Fatal("as wanted")
	case "exit":
		os.Exit(3)
	case "kill":
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
}

func TestNoServerSurvivesItsTests(t *testing.T) {
	need(t, Redis8)
	for _, end := range []string{"panic", "panic elsewhere", "fail", "exit", "kill"} {
		t.Run(end, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
			cmd.Env = append(os.Environ(), "REALSERVER_CHILD="+end)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("the child did not fail:\n%s", out)
			}
			var addr, dir string
			for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
				if a, ok := strings.CutPrefix(lines.Text(), "addr "); ok {
					addr = a
				}
				if d, ok := strings.CutPrefix(lines.Text(), "dir "); ok {
					dir = d
				}
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			if addr == "" {
				t.Fatalf("the child started no server:\n%s", out)
			}
			if end == "fail" && !strings.Contains(string(out), "Ready to accept connections") {
				t.Errorf("the child failed without its server's log:\n%s", out)
			}
			if err := until(func(ctx context.Context) error {
				conn, err := net.Dial("tcp", addr)
				if err == nil {
					conn.Close()
					return errors.New("the server survived its tests")
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
}
