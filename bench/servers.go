package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// A contender is a server in a process of its own.
type contender struct {
	name string
	addr string
	cmd  *exec.Cmd
}

// The servers that tables compare, in their order.
const (
	theDouble = "mayfly serve"
	realRedis = "Redis 8"
	miniRedis = "miniredis"
)

// startAll starts one of each.
func startAll() []*contender {
	return []*contender{startMayfly(), startRedis(), startMini()}
}

func stopAll(all []*contender) {
	for _, c := range all {
		c.stop()
	}
}

// startMayfly starts the double; args are further arguments of serve.
func startMayfly(args ...string) *contender {
	return startWithBanner(theDouble, exec.Command(program(), append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...))
}

// program is the program of the other module, built.
var program = sync.OnceValue(func() string {
	bin := filepath.Join(must(os.MkdirTemp("", "mayfly-bench")), "mayfly")
	build := exec.Command("go", "build", "-o", bin, "./cmd/mayfly")
	build.Dir = ".."
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	return bin
})

// startMini starts this program again, as a miniredis.
func startMini() *contender {
	return startWithBanner(miniRedis, exec.Command(must(os.Executable()), serveMini))
}

// serveMini is the argument that makes this program a miniredis.
const serveMini = "serve-miniredis"

func beMini() {
	s := must(miniredis.Run())
	fmt.Println("on", s.Addr())
	io.Copy(io.Discard, os.Stdin) // until the parent ends
}

// startWithBanner starts a server that first prints "... on host:port".
func startWithBanner(name string, cmd *exec.Cmd) *contender {
	out := must(cmd.StdoutPipe())
	_ = must(cmd.StdinPipe())
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	line := must(bufio.NewReader(out).ReadString('\n'))
	_, addr, found := strings.Cut(strings.TrimSpace(line), " on ")
	if !found {
		addr = strings.TrimPrefix(strings.TrimSpace(line), "on ")
	}
	go io.Copy(io.Discard, out)
	return ready(&contender{name, addr, cmd})
}

func startRedis() *contender { return startRedisOf(realRedis, redisDir()) }

// startRedisOf starts the server in dir; args are further options.
func startRedisOf(name, dir string, args ...string) *contender {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	cmd := exec.Command(filepath.Join(dir, "redis-server"), append([]string{"--port", port, "--bind", "127.0.0.1", "--save", ""}, args...)...)
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return ready(&contender{name, "127.0.0.1:" + port, cmd})
}

// redisDir is where the programs of Redis 8 are.
func redisDir() string {
	if dir := os.Getenv("MAYFLY_REDIS_BIN"); dir != "" {
		return dir
	}
	return strings.TrimSpace(string(must(exec.Command("../.ci/redis").Output())))
}

// ready returns once the server answers.
func ready(c *contender) *contender {
	rdb := c.client()
	defer rdb.Close()
	for range 200 {
		if rdb.Ping(context.Background()).Err() == nil {
			return c
		}
		time.Sleep(20 * time.Millisecond)
	}
	panic(c.name + " does not answer")
}

func (c *contender) client() *redis.Client { return redis.NewClient(&redis.Options{Addr: c.addr}) }

func (c *contender) stop() {
	c.cmd.Process.Kill()
	c.cmd.Wait()
}

// cpu is what the process has spent of all processors, to a hundredth of a second.
func (c *contender) cpu() time.Duration {
	stat := string(must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))))
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+2:])
	ticks := must(strconv.Atoi(fields[11])) + must(strconv.Atoi(fields[12]))
	return time.Duration(ticks) * 10 * time.Millisecond
}

// info returns a figure of INFO.
func (c *contender) info(rdb *redis.Client, name string) int64 {
	for line := range strings.Lines(rdb.Info(context.Background()).Val()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return must(strconv.ParseInt(value, 10, 64))
		}
	}
	panic(c.name + " does not tell " + name)
}

// ratio returns the median of a round's figure over another's in the same round.
func ratio(a, b []float64) float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] / b[i]
	}
	return median(all)
}

// verdict says a ratio, and whether it keeps its bound; a floor is kept from above.
func verdict(r, bound float64, floor bool) string {
	if bound != 0 && (r > bound) != floor && r != bound {
		return fmt.Sprintf("%.2f, missed", r)
	}
	return fmt.Sprintf("%.2f", r)
}
