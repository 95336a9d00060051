package realserver

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"syscall"
	"testing"
)

// onDyingThread runs f on a thread that Go then ends, as it does with the thread of a goroutine that returns while locked to it. The first
// thread of a process is never ended, so it is kept busy.
func onDyingThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if syscall.Gettid() == os.Getpid() {
			defer runtime.UnlockOSThread()
			onDyingThread(f)
			return
		}
		f()
	}()
	<-done
}

// For the kernel, which kills the server with its parent, the parent is a thread.
func TestAServerOutlivesTheThreadThatAskedForIt(t *testing.T) {
	need(t, Redis8)
	var s *Server
	var task string
	onDyingThread(func() {
		s = Start(t, Options{})
		task = fmt.Sprintf("/proc/self/task/%d", syscall.Gettid())
	})
	if err := until(func(context.Context) error {
		if _, err := os.Stat(task); os.IsNotExist(err) {
			return nil
		}
		return fmt.Errorf("%s still runs", task)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ask(t.Context(), "PING"); err != nil || !s.process.alive() {
		t.Errorf("PING = %v, alive = %v: the server died with a thread", err, s.process.alive())
	}
}

func TestAPausedServerHasStoppedWhenPauseReturns(t *testing.T) {
	s := Start(t, Options{})
	stopped := regexp.MustCompile(`State:\s+T`)
	for range 200 {
		s.Pause()
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.cmd.Process.Pid))
		if err != nil || !stopped.Match(status) {
			t.Fatalf("a paused server is %s, %v", status, err)
		}
		s.Resume()
	}
}
