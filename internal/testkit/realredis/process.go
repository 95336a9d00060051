package realredis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// A process is one run of a server. It ends with the test process at the latest, however that ends: on Linux the
// kernel sees to it, elsewhere only the tests' cleanup does.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{} // closed once it has been waited for
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
		// To the kernel the parent is the thread that forked, and Go ends threads: when a goroutine that is locked to
		// its thread returns. So this goroutine, which has to wait for the child anyway, forks it too, and keeps its
		// thread to itself until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.cmd.Wait() // its error is the way a server ends here: by signal
		}
	}()
	return p, <-started
}

// alive reports whether p has been started and has not ended.
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

// signal sends a signal by its name, for those that the standard library has on some systems only.
func (p *process) signal(name string) error {
	return exec.Command("sh", "-c", fmt.Sprintf("kill -%s %d", name, p.cmd.Process.Pid)).Run()
}

// end sends s and waits until the process is gone. One that is gone already is fine.
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

// patience is how long a server may take for what takes it milliseconds, on a machine that is busy with other tests. It only
// bounds a failure: who waits asks again and again.
const patience = 2 * time.Minute

// until asks, less and less often, whether ok finds nothing wrong any more, and returns what it last found when patience ends.
// Other processes do not tell us when they are ready, so they have to be asked.
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
