package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/proxy"
	"github.com/mayflycache/mayfly/redistest"
)

func init() {
	processes.Roles["told"] = func() int {
		ctx, stop := untilToldToEnd()
		defer stop()
		return run(ctx, strings.Fields(os.Getenv("MAYFLY_TEST_ARGS")), os.Stdout, os.Stderr)
	}
}

// audited300 returns a proxy of a server of 300 keys without a TTL.
func audited300(t *testing.T) *proxy.Proxy {
	srv := redistest.Start(t)
	for i := range 300 {
		expect.OK(t, srv.Client().Set(t.Context(), fmt.Sprint("key:", i), "v", 0).Err())
	}
	return proxy.Start(t, srv.Addr())
}

// atOnce is less than any timeout that a command has: what ended within it was not waiting for one, on a machine that is busy too.
const atOnce = 2500 * time.Millisecond

// A command that is interrupted while Redis hangs ends at once, and reports what it has.
func TestToldToEndWhileRedisHangs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args       string
		at         string // the command that is not answered
		skip       int    // of them are before
		code       int
		out        string
		complaints string
	}{
		{"audit URL", "hello", 0, exitPartial, "", "partial: nothing was looked at: interrupted"},
		{"audit URL", "dbsize", 0, exitPartial, "0 keys", "partial: interrupted"},
		{"audit URL --max-rate=9000", "pttl", 100, exitPartial, " without TTL", "partial: interrupted"},
		{"audit URL --max-rate=9000 --json", "scan", 1, exitPartial, `"complete": false`, "partial: interrupted"},
		{"audit URL --max-rate=9000 --fail-on no-ttl>0", "pttl", 100, exitFails, "without TTL", "no-ttl>0"},
		{"audit URL --max-rate=9000 --fix=key:*=1h", "pttl", 100, exitPartial, "would be given", "partial: interrupted"},
		{"audit URL --max-rate=9000 --fix=key:*=1h --yes", "pexpire", 100, exitPartial, "no answer came for", "partial: interrupted"},
		{"lab --redis URL", "hello", 0, 1, "", "interrupted"},
		{"demo --addr 127.0.0.1:0 --redis URL", "info", 0, 1, "", "interrupted"},
	} {
		t.Run(c.args+" at "+c.at, func(t *testing.T) {
			p := audited300(t)
			held := p.Hold(c.at, "").Skip(c.skip)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var out, complaints bytes.Buffer
			ended := make(chan int)
			go func() {
				ended <- run(ctx, strings.Fields(strings.ReplaceAll(c.args, "URL", "redis://"+p.Addr())), &out, &complaints)
			}()
			select {
			case <-held.Arrived():
			case code := <-ended:
				t.Fatalf("exit %d: %s%s", code, complaints.String(), out.String())
			}
			cancel()
			begun := time.Now()
			code := <-ended
			if took := time.Since(begun); took > atOnce || code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(complaints.String(), c.complaints) {
				t.Errorf("exit %d after %v: %s%s", code, took, complaints.String(), out.String())
			}
		})
	}
}

// A command soon gives up cleaning up on a Redis that hangs.
func TestToldToEndInTheMiddle(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, complaints bytes.Buffer
	ended := make(chan int)
	go func() {
		ended <- run(ctx, strings.Fields("lab --only GET --processes 1 --callers 2 --expiries 100 --redis redis://"+srv.Addr()), &out, &complaints)
	}()
	expect.Eventually(t, "a value is read", func() bool {
		return slices.ContainsFunc(srv.Log(), func(line string) bool { return strings.HasPrefix(strings.ToUpper(line), "GET ") })
	})
	srv.Hang()
	defer srv.Thaw()
	cancel()
	begun := time.Now()
	code := <-ended
	if took := time.Since(begun); took > atOnce || code != 0 || !strings.Contains(out.String(), "stopped early") {
		t.Errorf("exit %d after %v: %s%s", code, took, complaints.String(), out.String())
	}
}

// An interrupted tool takes its child processes along: the pipe that only the child can write to ends.
func TestAToolEndsWhole(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	go func() {
		_, err := tool(ctx, dir, "sh", "-c", "mkfifo new && mv new pipe && (exec sleep 100 >pipe) & wait")
		ended <- err
	}()
	expect.Eventually(t, "a pipe", func() bool { _, err := os.Stat(pipe); return err == nil })
	child, err := os.Open(pipe) // when the child has opened it too
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	begun := time.Now()
	cancel()
	if err := <-ended; err == nil || time.Since(begun) > atOnce {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
	if _, err := io.ReadAll(child); err != nil || time.Since(begun) > atOnce {
		t.Errorf("the child ended after %v: %v", time.Since(begun), err)
	}
}

// The program hears SIGTERM, and SIGINT, while Redis does not answer.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := audited300(t)
		held := p.Hold("pexpire", "").Skip(100)
		told := processes.Start(t, "told", "", "MAYFLY_TEST_ARGS=audit redis://"+p.Addr()+" --fix=key:*=1h --yes --json")
		<-held.Arrived()
		expect.OK(t, told.Cmd.Process.Signal(s))
		begun := time.Now()
		err := told.End()
		exited, _ := errors.AsType[*exec.ExitError](err)
		if took := time.Since(begun); took > atOnce || exited == nil || exited.ExitCode() != exitPartial {
			t.Errorf("%v: %v after %v", s, err, took)
		}
	}
}
