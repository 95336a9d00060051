package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

func TestMain(m *testing.M) {
	state := filepath.Join(os.TempDir(), fmt.Sprintf("mayfly-test-%d", os.Getpid())) // not where the user's own demo keeps its data
	os.Setenv("XDG_STATE_HOME", state)
	flag.Set("test.parallel", "4") // unless the command line says otherwise: parallel tests only wait
	code := processes.Main(m)
	os.RemoveAll(state)
	os.Exit(code)
}

func init() {
	processes.Roles["auditor"] = func() int {
		return run(context.Background(), strings.Fields(os.Getenv("MAYFLY_TEST_ARGS")), os.Stdout, os.Stderr)
	}
}

// An audit that is killed, and killed again when it has gone on, finds in the end what one audit would have found.
func TestAuditIsKilledAndResumes(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	const keys, endless = 5000, 1234
	_, err := srv.Client().Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range keys {
			ttl := time.Hour
			if i < endless {
				ttl = 0
			}
			p.Set(t.Context(), fmt.Sprintf("key:%d", i), "v", ttl)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	url, file := "redis://"+srv.Addr(), filepath.Join(t.TempDir(), "state")
	for range 2 {
		before, _ := os.ReadFile(file)
		p := processes.Start(t, "auditor", "", "MAYFLY_TEST_ARGS=audit "+url+" --max-rate=1000 --resume "+file)
		for end := time.Now().Add(20 * time.Second); ; <-time.After(10 * time.Millisecond) {
			if state, err := os.ReadFile(file); err == nil && string(state) != string(before) {
				break
			}
			if time.Now().After(end) {
				t.Fatal("no state was kept")
			}
		}
		if err := p.Cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := p.Cmd.Wait(); err == nil {
			t.Fatal("the audit was over before it was killed")
		}
	}
	code, out, complaints := mayfly(t, url, "--resume", file, "--max-rate=0")
	if want := fmt.Sprintf("%d keys, %d without TTL", keys, endless); code != 0 || !strings.Contains(strings.ReplaceAll(out, ",", ""), strings.ReplaceAll(want, ",", "")) {
		t.Errorf("exit %d, want %q: %s%.500s", code, want, complaints, out)
	}
}
