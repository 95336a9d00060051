package sliding_test

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// repeats is a network that delivers commands once more, at once or much later.
type repeats struct {
	mu   sync.Mutex
	r    *rand.Rand
	sent [][]any
	rdb  *redis.Client // that sends the copies
	n    int
}

func (n *repeats) DialHook(next redis.DialHook) redis.DialHook { return next }

func (n *repeats) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		n.again(cmd)
		return err
	}
}

func (n *repeats) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		n.again(cmds...)
		return err
	}
}

// again sends copies of commands, or of earlier ones.
func (n *repeats) again(cmds ...redis.Cmder) {
	var late [][]any
	n.mu.Lock()
	for _, cmd := range cmds {
		if cmd.Name() != "evalsha" {
			continue
		}
		args := cmd.Args()
		if n.sent = append(n.sent, args); n.r.IntN(3) > 0 {
			args = n.sent[n.r.IntN(len(n.sent))]
		}
		if n.r.IntN(4) == 0 {
			late = append(late, args)
		}
	}
	n.n += len(late)
	n.mu.Unlock()
	for _, args := range late {
		n.rdb.Do(context.Background(), args...)
	}
}

// admission is an answer to a process: when it asked, when the answer came, when the key's window ends, and the number of calls.
type admission struct {
	asked, answered, window time.Duration
	n                       int
}

// Whatever happens to processes that lease shares of one limit, no promised window has more calls than the limit. They ask at random, rest, are
// killed and restarted, and the server hangs, is slow, and gets commands twice and late.
func TestSharesNeverExceedTheLimit(t *testing.T) {
	t.Parallel()
	for kind, o := range windows {
		for _, trouble := range []string{"none", "latency", "repeats", "clock"} {
			if (trouble == "latency" || trouble == "clock") && kind == "fixed" { // the test cannot see in which window a call was counted
				continue
			}
			if !effort.Long() && (kind != "strict" || trouble != "repeats") {
				continue
			}
			for range effort.Times(1, 10) {
				t.Run(kind+", "+trouble, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { neverMore(t, kind, o, trouble) }) })
			}
		}
	}
}

func neverMore(t *testing.T, kind string, o sliding.LimiterOptions, trouble string) {
	const processes, window, limit, lease = 5, time.Second, 2400, 50 * time.Millisecond
	lasts := time.Duration(effort.Times(1400, 4000)) * time.Millisecond
	srv := redistest.Start(t)
	seed := effort.Seed(t, 0)
	copies := &repeats{r: rand.New(rand.NewPCG(seed, 1)), rdb: srv.Client()}
	o.Limit, o.Lease, o.RedisTimeout = limit, lease, 0
	time.Sleep(rand.N(window))
	begun := time.Now()
	var mu sync.Mutex
	var log []admission
	admitted, refused, failed := 0, 0, 0
	process := func(r *rand.Rand) {
		var rdb *redis.Client
		var l *sliding.Limiter[string]
		var all []*sliding.Limiter[string]
		start := func() {
			rdb = redis.NewClient(srv.Options())
			if trouble == "repeats" {
				rdb.AddHook(copies)
			}
			l = mayfly.Must(sliding.NewLimiter(calls(rdb, window), o))
			all = append(all, l)
		}
		start()
		pace := time.Millisecond
		for time.Since(begun) < lasts {
			for range 1 + r.IntN(6) {
				asked := time.Since(begun)
				n := 1 + r.IntN(2)*r.IntN(3)
				d, err := l.Allow(t.Context(), "ada", n)
				mu.Lock()
				switch {
				case err != nil:
					failed++
				case !d.Allowed:
					refused++
				default:
					now := time.Since(begun)
					log = append(log, admission{asked, now, now + srv.TTL("calls:ada"), n})
					admitted += n
				}
				mu.Unlock()
			}
			time.Sleep(time.Duration(r.Int64N(int64(2 * pace))))
			switch r.IntN(100) {
			case 0:
				pace = time.Duration(1+r.IntN(30)) * 100 * time.Microsecond
			case 1:
				time.Sleep(time.Duration(r.Int64N(int64(150 * time.Millisecond))))
			case 2: // a kill: nothing is given back
				rdb.Close()
				start()
			case 3:
				l.Close(t.Context())
				rdb.Close()
				start()
			}
		}
		for _, l := range all {
			l.Close(t.Context())
		}
		rdb.Close()
	}
	var all sync.WaitGroup
	for p := range processes {
		all.Go(func() { process(rand.New(rand.NewPCG(seed, uint64(2+p)))) })
	}
	if trouble == "latency" {
		srv.Latency(1500 * time.Microsecond)
	}
	if trouble == "clock" {
		all.Go(func() { goesBack(t, srv, rand.New(rand.NewPCG(seed, 0)), lasts) })
	}
	time.Sleep(lasts / 3)
	srv.Hang()
	time.Sleep(200 * time.Millisecond)
	srv.Thaw()
	all.Wait()
	t.Logf("%d admitted, %d refused, %d failed, %d repeated", admitted, refused, failed, copies.n)
	if admitted < limit/2 || refused < 50 || trouble == "repeats" && copies.n < 20 {
		t.Error("this shows nothing")
	}
	most(t, kind, log, window, limit)
}

// goesBack sets a server's clock back, by little and by much, and makes it forget its scripts.
func goesBack(t *testing.T, srv *redistest.Server, r *rand.Rand, lasts time.Duration) {
	rdb := srv.Client()
	for begun := time.Now(); time.Since(begun) < lasts; time.Sleep(time.Duration(r.Int64N(int64(400 * time.Millisecond)))) {
		stepBack(t, srv, time.Duration(math.Pow(10, 4*r.Float64())*float64(time.Millisecond)))
		rdb.ScriptFlush(t.Context())
	}
}

// most checks the most calls that a log of admissions has in the windows that a kind of limiter promises.
func most(t *testing.T, kind string, log []admission, window time.Duration, limit int) {
	if kind == "fixed" {
		windows := map[time.Duration]int{}
		for _, a := range log {
			if windows[a.window] += a.n; windows[a.window] > limit {
				t.Fatalf("more than %d in the window that ended at %v", limit, a.window)
			}
		}
		return
	}
	for _, part := range []time.Duration{window / 4, window} {
		bound := float64(limit)
		if kind == "sliding" {
			bound *= 1 + float64(part)/float64(window)
		}
		if n := within(log, part); float64(n) > bound {
			t.Errorf("%d were admitted in %v, the bound is %v", n, part, bound)
		}
	}
}

// within returns the most admissions that were requested and answered within any stretch of a length.
func within(log []admission, length time.Duration) (most int) {
	log = slices.SortedFunc(slices.Values(log), func(a, b admission) int { return cmp.Compare(a.asked, b.asked) })
	for i, a := range log {
		n := 0
		for _, b := range log[i:] {
			if b.asked >= a.asked+length {
				break
			}
			if b.answered < a.asked+length {
				n += b.n
			}
		}
		most = max(most, n)
	}
	return most
}
