// Package processes runs a test program again, as another process in another role: for tests of what several processes do to one Redis, and
// of what a killed process leaves behind.
//
//	func TestMain(m *testing.M) { os.Exit(processes.Main(m)) }
//	func init()                 { processes.Roles["writer"] = writer }
//	...
//	p := processes.Start(t, "writer", srv.Addr())
//
// It is for tests only.
package processes

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Roles are the possible roles of a process; each returns the exit code. They must be set before [Main] runs.
var Roles = map[string]func() int{}

const role, servers = "MAYFLY_TEST_ROLE", "MAYFLY_TEST_REDIS"

// Main runs the role that this process was started in, or the tests if there is none, and returns the exit code. After the tests no goroutine
// may be left in code whose name contains one of owners, such as "mayfly/cacheaside.(*". go-redis's log messages about servers that tests
// break are dropped.
func Main(m *testing.M, owners ...string) int {
	logging.Disable()
	debug.SetGCPercent(400) // tests are short: collecting garbage took a tenth of their time
	name := os.Getenv(role)
	if name == "" {
		return tests(m, owners)
	}
	play, ok := Roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "processes: unknown role %q\n", name)
		return 1
	}
	return play()
}

func tests(m *testing.M, owners []string) int {
	code := m.Run()
	for _, owner := range owners {
		left := Stacks(owner)
		for end := time.Now().Add(time.Minute); len(left) > 0 && time.Now().Before(end); left = Stacks(owner) {
			<-time.After(10 * time.Millisecond) // a goroutine that was told to end may not have run yet
		}
		if code == 0 && len(left) > 0 {
			fmt.Fprintf(os.Stderr, "goroutines that outlived their owner:\n%s\n", strings.Join(left, "\n\n"))
			code = 1
		}
	}
	return code
}

// Stacks returns the stacks of the goroutines that run a function whose name contains part.
func Stacks(part string) (found []string) {
	buf := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, part) && !strings.Contains(stack, "main.main") {
			found = append(found, stack)
		}
	}
	return found
}

// A Process is another process of this test program.
type Process struct {
	Cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// Start starts a process in a role. The process finds the servers at addrs, separated by commas, with [Dial]. env is as for exec.Cmd. The
// process is killed when the test ends.
func Start(t testing.TB, name, addrs string, env ...string) *Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, role+"="+name, servers+"="+addrs)...)
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &Process{cmd, in, bufio.NewScanner(out)}
}

// Line returns the next line that the process writes.
func (p *Process) Line() (string, error) {
	if !p.out.Scan() {
		return "", cmp.Or(p.out.Err(), io.ErrUnexpectedEOF)
	}
	return p.out.Text(), nil
}

// Say writes a line to the process's standard input.
func (p *Process) Say(line string) { io.WriteString(p.in, line+"\n") }

// Hush closes the process's standard input, for a role that runs until then.
func (p *Process) Hush() { p.in.Close() }

// End closes the process's standard input, waits for the process and returns its result.
func (p *Process) End() error {
	p.Hush()
	return p.Cmd.Wait()
}

// Dial connects a process to the servers of its test: to one, or to a cluster if there are several addresses.
func Dial() redis.UniversalClient {
	addrs := strings.Split(os.Getenv(servers), ",")
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: addrs, IsClusterMode: len(addrs) > 1, ContextTimeoutEnabled: true,
		// Tests are not about these timeouts, and the machine may be busy.
		DialTimeout: time.Minute, ReadTimeout: time.Minute, WriteTimeout: time.Minute, PoolTimeout: time.Minute,
	})
}

// Forever calls do from several goroutines without end, and writes a line once there is something to look at: the role of a process that
// [Kill] kills.
func Forever(do func()) int {
	for range 4 {
		go func() {
			for {
				do()
			}
		}()
	}
	for range 5 { // for whatever the other goroutines have done
		do()
	}
	fmt.Println("at work")
	select {}
}

// Kill starts a process again and again, and kills it within 20 ms after it wrote a line: at any point of its work.
func Kill(t *testing.T, times int, name, addrs string, env ...string) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range times {
		p := Start(t, name, addrs, env...)
		if _, err := p.Line(); err != nil {
			t.Errorf("the process said nothing: %v", err)
		}
		<-time.After(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
		if err := p.Cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
		p.Cmd.Wait()
	}
}

// EachKey calls see with every key of rdb, and fails the test for keys without a TTL, and if there are fewer keys than least, because the
// test would prove nothing.
func EachKey(t *testing.T, rdb *redis.Client, least int, see func(key string)) {
	t.Helper()
	ctx, keys := context.Background(), 0
	scan := rdb.Scan(ctx, 0, "", 1000).Iterator()
	for ; scan.Next(ctx); keys++ {
		if left, err := rdb.PTTL(ctx, scan.Val()).Result(); err != nil || left == -1 {
			t.Errorf("%s has no end (%v)", scan.Val(), err)
		}
		see(scan.Val())
	}
	t.Logf("%d keys", keys)
	if keys < least || scan.Err() != nil {
		t.Errorf("only %d keys were written (%v): this shows nothing", keys, scan.Err())
	}
}
