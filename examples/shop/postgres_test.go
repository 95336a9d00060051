package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mayflycache/mayfly/internal/testkit/foreign"
)

// startPostgres starts a PostgreSQL with an empty database that ends with the test, and returns its URL. It is reached by a unix
// socket alone. Without MAYFLY_POSTGRES_BIN, the directory of its programs, the test is skipped.
func startPostgres(t *testing.T, connections int) string {
	t.Helper()
	bin := foreign.Named(t, "MAYFLY_POSTGRES_BIN", ".ci/postgres")
	dir, err := os.MkdirTemp("", "shop") // t.TempDir's name may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	as, err := unprivileged(dir)
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	command := func(program string, args ...string) *exec.Cmd {
		words := slices.Concat(as, []string{filepath.Join(bin, program)}, args)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		return cmd
	}

	out, err := command("initdb", "-D", data, "-U", "shop", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, tail(out))
	}
	var log bytes.Buffer
	server := command("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", fmt.Sprint("max_connections=", connections))
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { server.Wait(); close(ended) }()
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGQUIT) // at once: nothing is to be kept
		<-ended
	})

	at := "postgres:///postgres?user=shop&host=" + url.QueryEscape(dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		conn, err := pgx.Connect(ctx, at)
		if err == nil {
			conn.Close(ctx)
			tick.Stop()
			return at
		}
		select {
		case <-ended:
			t.Fatalf("PostgreSQL did not start:\n%s", tail(log.Bytes()))
		case <-ctx.Done():
			t.Fatalf("PostgreSQL does not answer: %v", err)
		case <-tick.C:
		}
	}
}

// unprivileged returns the words before a command that make it end with this process, and run as nobody where this is root, as whom
// PostgreSQL refuses to run. dir becomes nobody's.
func unprivileged(dir string) (words []string, err error) {
	setpriv, err := exec.LookPath("setpriv")
	if err == nil {
		words = []string{setpriv, "--pdeathsig", "KILL"}
	}
	if os.Geteuid() != 0 {
		return words, nil
	}
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root, and root needs setpriv to become nobody: %w", err)
	}
	const nobody, nogroup = 65534, 65534
	return append(words, "--reuid=nobody", "--regid=nogroup", "--clear-groups"), os.Chown(dir, nobody, nogroup)
}

// tail returns the end of a log that may be long.
func tail(log []byte) []byte { return log[max(0, len(log)-2000):] }
