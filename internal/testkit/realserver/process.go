package realserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// A process is one run of a server. It ends with the test process at the latest: on Linux the kernel guarantees that, elsewhere only the
// tests' cleanup does.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed once the process has been waited for
	paused bool
}

// run starts program, its output appended to log.
func run(log, program string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	dieWithParent(p.cmd)

	started := make(chan error)
	go func() {
		// For the kernel the parent is the thread that forked, and Go ends the thread of a goroutine that returns while locked to it. So this
		// goroutine, which has to wait for the child anyway, also forks it, and keeps its thread until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.cmd.Wait() // ignore the error: servers here end by a signal
		}
	}()
	return p, <-started
}

// alive reports whether p has started and not ended.
func (p *process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// signal sends a signal given by its name, for signals that the standard library has only on some systems.
func (p *process) signal(name string) error {
	return exec.Command("sh", "-c", fmt.Sprintf("kill -%s %d", name, p.cmd.Process.Pid)).Run()
}

// end sends s and waits until the process is gone. It does nothing if the process is gone already.
func (p *process) end(s os.Signal) error {
	if !p.alive() {
		return nil
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%v did not end within %v of %v", p.cmd, patience, s)
	}
}

// patience is how long a server may take, on a machine busy with other tests, for what normally takes milliseconds. It only bounds a failure:
// waiting code polls.
const patience = 2 * time.Minute

// until calls ok, less and less often, until it finds nothing wrong, and returns its last error when patience ends. Other processes do not
// tell us when they are ready, so we have to poll.
func until(ok func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(pause*5/4, 20*time.Millisecond) {
		err := ok(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
