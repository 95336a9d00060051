package sliding_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/sliding"
)

func init() {
	processes.Roles["visitor"] = visitor
	processes.Roles["caller"] = caller
}

const (
	eachProcesses  = 8
	eachGoroutines = 64
	lasts          = 4 * time.Second
	atLast         = 2 * time.Minute // of a run that has not shown enough yet, on a machine that is busy

	leastMade, leastUsed = 64, 640 // with less the run shows nothing

	visitorIdle = 400 * time.Millisecond
	visitorAge  = 1500 * time.Millisecond
	whole       = 3 * time.Millisecond // Redis's milliseconds are whole, and so are those of a copy
)

// visit is a session that all processes use. It was created between two times, which bound its end.
type visit struct {
	ID            string
	Before, After time.Time
}

// visitor makes sessions and uses everybody's, and complains about one that outlives its age, or ends while it is used. Every second process has
// a local tier, and renews only values with less than half of their life left.
func visitor() int {
	rdb, ctx := processes.Dial(), context.Background()
	ns := mayfly.Namespace[string, cart]{Name: "visits", Redis: rdb, Prefix: "visit:", TTL: visitorIdle}
	o, surely := sliding.Options{MaxAge: visitorAge, RedisTimeout: patient}, visitorIdle
	if os.Getenv("MAYFLY_TEST_LOCAL") == "1" {
		ns.Local = mayfly.Must(mayfly.OpenLocal(ctx, mayfly.LocalOptions{Redis: rdb, Prefixes: []string{ns.Prefix}, MaxEntries: 1000}))
		o.TouchBelow, surely = 0.5, visitorIdle/2
	}
	s := mayfly.Must(sliding.New(ns, o))
	var made, used, ended, wrong atomic.Int64
	complain := func(format string, args ...any) {
		if wrong.Add(1) == 1 { // one report is enough
			fmt.Fprintf(os.Stderr, "visitor: "+format+"\n", args...)
		}
	}
	fmt.Println("ready")
	fmt.Scanln()
	begun := time.Now()
	enough := func() bool { // all together
		return made.Load() >= leastMade/eachProcesses && used.Load() >= leastUsed/eachProcesses && ended.Load() >= leastMade/eachProcesses
	}
	goOn := func() bool { return time.Since(begun) < lasts || !enough() && time.Since(begun) < atLast }
	var all sync.WaitGroup
	for range eachGoroutines {
		all.Go(func() {
			var v visit
			var alive time.Time // until when it lives by this goroutine's last access
			for ; goOn(); <-time.After(rand.N(20 * time.Millisecond)) {
				if v.ID == "" || rand.N(40) == 0 {
					if v = some(ctx, rdb); v.ID == "" || rand.N(4) == 0 {
						v = visit{ID: fmt.Sprint(rand.Uint64()), Before: time.Now()}
						if err := s.Create(ctx, v.ID, cart{}); err != nil {
							complain("create: %v", err)
						}
						v.After = time.Now()
						text, _ := json.Marshal(v)
						rdb.LPush(ctx, "visits", text)
						rdb.LTrim(ctx, "visits", 0, 63)
						made.Add(1)
					}
					alive = time.Time{}
				}
				begun := time.Now()
				err := use(ctx, s, v.ID)
				done := time.Now()
				switch {
				case err == nil:
					used.Add(1)
					if past := begun.Sub(v.After.Add(visitorAge)); past > whole {
						complain("%v past its age it is still there", past)
					}
					alive = begun.Add(surely)
				case !errors.Is(err, mayfly.ErrNotFound):
					complain("use: %v", err)
				default:
					ended.Add(1)
					if left := alive.Sub(done); left > whole && done.Before(v.Before.Add(visitorAge-whole)) {
						complain("it is gone %v before it may be", left)
					}
					v.ID = ""
				}
			}
		})
	}
	all.Wait()
	fmt.Println(made.Load(), used.Load(), ended.Load())
	return int(min(wrong.Load(), 1))
}

func some(ctx context.Context, rdb redis.UniversalClient) (v visit) {
	text, _ := rdb.LIndex(ctx, "visits", rand.N(int64(64))).Bytes()
	json.Unmarshal(text, &v)
	return v
}

// use accesses a session in one of the ways that renew it.
func use(ctx context.Context, s *sliding.Store[string, cart], id string) (err error) {
	switch rand.N(8) {
	case 0:
		err = s.Touch(ctx, id)
	case 1:
		var alive map[string]bool
		if alive, err = s.TouchMany(ctx, id); err == nil && !alive[id] {
			err = mayfly.ErrNotFound
		}
	case 2:
		_, err = s.Update(ctx, id, func(c cart) (cart, error) { c.Count++; return c, nil })
	default:
		_, err = s.Get(ctx, id)
	}
	return err
}

// Whatever many processes do to a session, it ends with its age, and not while it is used.
func TestProcessesKeepSessions(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	var all []*processes.Process
	for n := range eachProcesses {
		all = append(all, processes.Start(t, "visitor", srv.Addr(), fmt.Sprint("MAYFLY_TEST_LOCAL=", n%2)))
	}
	var made, used, ended int
	for _, line := range together(t, all) {
		var m, u, e int
		fmt.Sscan(line, &m, &u, &e)
		made, used, ended = made+m, used+u, ended+e
	}
	t.Logf("%d sessions made, %d uses, %d found ended", made, used, ended)
	if made < leastMade || used < leastUsed || ended < leastMade {
		t.Error("the run is void")
	}
}

// together lets processes begin when all are ready, and returns what each printed at its end.
func together(t *testing.T, all []*processes.Process) (said []string) {
	t.Helper()
	line := func(p *processes.Process) string {
		text, err := p.Line()
		if err != nil {
			t.Fatalf("a process has died: %v", err)
		}
		return text
	}
	for _, p := range all {
		line(p)
	}
	for _, p := range all {
		p.Say("")
	}
	for _, p := range all {
		said = append(said, line(p))
		if err := p.End(); err != nil {
			t.Error(err)
		}
	}
	return said
}

const (
	callWindow, callLimit = time.Second, 200
	leastAdmitted         = 2 * callLimit // with less the run shows nothing
)

// caller asks as often as it can, and prints when it asked for each admitted call and got the answer, in microseconds.
func caller() int {
	rdb, ctx := processes.Dial(), context.Background()
	l := mayfly.Must(sliding.NewLimiter(calls(rdb, callWindow), sliding.LimiterOptions{Limit: callLimit, RedisTimeout: patient, Sliding: os.Getenv("MAYFLY_TEST_SLIDING") == "true"}))
	fmt.Println("ready")
	fmt.Scanln()
	begun := time.Now()
	var together atomic.Int64 // admitted by all processes, as far as this one knows
	goOn := func() bool {
		return time.Since(begun) < lasts || together.Load() < leastAdmitted && time.Since(begun) < atLast
	}
	var mu sync.Mutex
	admitted := [][2]int64{}
	var all sync.WaitGroup
	for range eachGoroutines {
		all.Go(func() {
			for ; goOn(); <-time.After(rand.N(30 * time.Millisecond)) {
				asked := time.Now().UnixMicro()
				d, err := l.Allow(ctx, "hot", 1)
				if err != nil {
					fmt.Fprintln(os.Stderr, "caller:", err)
				}
				if d.Allowed {
					mu.Lock()
					admitted = append(admitted, [2]int64{asked, time.Now().UnixMicro()})
					mu.Unlock()
					together.Store(rdb.Incr(ctx, "admitted").Val())
				}
			}
		})
	}
	all.Wait()
	text, _ := json.Marshal(admitted)
	fmt.Println(string(text))
	return 0
}

// Many processes together get at most twice the limit in any window if windows are fixed, and the limit for each window in total. Sliding windows
// may err as their comment says.
func TestProcessesShareALimit(t *testing.T) {
	for _, slide := range []bool{false, true} {
		t.Run(fmt.Sprintf("sliding %v", slide), func(t *testing.T) {
			srv := realredis.Start(t, realredis.Options{})
			var all []*processes.Process
			for range eachProcesses {
				all = append(all, processes.Start(t, "caller", srv.Addr(), fmt.Sprint("MAYFLY_TEST_SLIDING=", slide)))
			}
			var admitted [][2]int64
			for _, line := range together(t, all) {
				var one [][2]int64
				if err := json.Unmarshal([]byte(line), &one); err != nil {
					t.Fatalf("%v: %.100s", err, line)
				}
				admitted = append(admitted, one...)
			}
			slices.SortFunc(admitted, func(a, b [2]int64) int { return int(a[0] - b[0]) })
			if len(admitted) < leastAdmitted {
				t.Fatalf("%d were admitted: the run is void", len(admitted))
			}
			first, last := admitted[0][0], admitted[0][1]
			for _, a := range admitted {
				last = max(last, a[1])
			}
			// Each window is begun by a call after the one before has ended.
			windows := int(time.Duration(last-first)*time.Microsecond/callWindow) + 1
			if most := windows * callLimit; !slide && len(admitted) > most {
				t.Errorf("%d were admitted in %d windows of %d", len(admitted), windows, callLimit)
			}
			// A call that was requested and answered within one window's length was admitted in it.
			worst := 0
			for i, a := range admitted {
				within := 0
				for _, b := range admitted[i:] {
					if b[1] <= a[0]+callWindow.Microseconds() {
						within++
					}
				}
				worst = max(worst, within)
			}
			t.Logf("%d admitted in %d windows, at most %d within any window's length, the limit is %d", len(admitted), windows, worst, callLimit)
			if worst > 2*callLimit {
				t.Errorf("%d were admitted within a window's length, the limit is %d", worst, callLimit)
			}
		})
	}
}
