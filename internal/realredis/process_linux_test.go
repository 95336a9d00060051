package realredis

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
)

// The kernel kills the server with its parent, which to the kernel is a thread. Go ends the thread of a goroutine that
// returns while locked to it; a server started there must live on.
func TestAServerOutlivesTheThreadThatAskedForIt(t *testing.T) {
	need(t, Redis8)
	var s *Server
	thread := make(chan int)
	go func() {
		runtime.LockOSThread()
		s = Start(t, Options{})
		thread <- syscall.Gettid()
	}()
	task := fmt.Sprintf("/proc/self/task/%d", <-thread)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := until(ctx, func() error {
		if _, err := os.Stat(task); os.IsNotExist(err) {
			return nil
		}
		return fmt.Errorf("%s still runs", task)
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.Client().Ping(ctx).Err(); err != nil || !s.process.alive() {
		t.Errorf("PING = %v, alive = %v: the server died with a thread", err, s.process.alive())
	}
}
