package expiry_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/testkit/realserver"
	"github.com/mayflycache/mayfly/internal/testkit/wire"
)

// nowMs begins a script. Time stands still in a script, so this is the time that its commands use.
const nowMs = "local t = redis.call('TIME') local now = t[1]*1000 + math.floor(t[2]/1000) "

// server is a real Redis, and a connection to it.
type server struct {
	*realserver.Server
	t    testing.TB
	conn *wire.Conn
}

func start(t testing.TB, o realserver.Options) *server {
	srv := realserver.Start(t, o)
	conn, err := wire.Dial(context.Background(), srv.Addr(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &server{srv, t, conn}
}

// do sends a command on the connection, which takes less time than one of its own.
func (s *server) do(words ...any) resp.Value {
	s.t.Helper()
	text := make([]string, len(words))
	for i, w := range words {
		text[i] = fmt.Sprint(w)
	}
	v, err := s.conn.Do(text...)
	if err != nil {
		s.t.Fatalf("%.500q: %v", text, err)
	}
	return v
}

// eval returns what a script does: a string, a number, or a list of numbers.
func (s *server) eval(script string, args ...any) string {
	s.t.Helper()
	return said(s.do(append([]any{"EVAL", nowMs + script, 0}, args...)...))
}

func said(v resp.Value) string {
	switch v.Kind {
	case ':':
		return fmt.Sprint(v.Int)
	case '*':
		var parts []string
		for _, e := range v.List {
			parts = append(parts, said(e))
		}
		return fmt.Sprint(parts)
	}
	return v.Text
}

func (s *server) debug(active int) {
	s.t.Helper()
	s.do("DEBUG", "SET-ACTIVE-EXPIRE", active)
}

// A reader of a real Redis sees what Dead says; what a command does with a deadline in the present millisecond depends on the command.
func TestDeadIsWhatAReaderOfRedisSees(t *testing.T) {
	srv := start(t, realserver.Options{Config: []string{"hz 500"}})
	srv.debug(0)
	for _, c := range []struct {
		name   string
		script string
		want   [3]string // with a deadline 1 ms ago, now, in 1 ms
	}{
		{"a key set to end now is readable through this millisecond",
			"redis.call('SET','k','v','PXAT',now+ARGV[1]) return redis.call('GET','k') or 'nil'",
			[3]string{"nil", "v", "v"}},
		{"PEXPIREAT now deletes at once",
			"redis.call('SET','k','v') redis.call('PEXPIREAT','k',now+ARGV[1]) return redis.call('GET','k') or 'nil'",
			[3]string{"nil", "nil", "v"}},
		{"GETEX with a deadline now deletes at once",
			"redis.call('SET','k','v') redis.call('GETEX','k','PXAT',now+ARGV[1]) return redis.call('GET','k') or 'nil'",
			[3]string{"nil", "nil", "v"}},
		{"HPEXPIREAT now deletes the field at once",
			"redis.call('HSET','h','f','v') redis.call('HPEXPIREAT','h',now+ARGV[1],'FIELDS',1,'f') return redis.call('HGET','h','f') or 'nil'",
			[3]string{"nil", "nil", "v"}},
		{"HSETEX with a deadline now deletes the field at once",
			"redis.call('HSETEX','h','PXAT',now+ARGV[1],'FIELDS',1,'f','v') return redis.call('HGET','h','f') or 'nil'",
			[3]string{"nil", "nil", "v"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, want := range c.want {
				srv.do("DEL", "k", "h")
				if got := srv.eval(c.script, i-1); got != want {
					t.Errorf("deadline now%+d: %s, want %s", i-1, got, want)
				}
			}
		})
	}

	for _, c := range []struct{ name, write, read string }{
		{"a key", "redis.call('SET','p','v','PXAT',now+2) return now+2", "return {now, redis.call('GET','p') and 1 or 0}"},
		{"a field", "redis.call('HSET','q','f','v') redis.call('HPEXPIREAT','q',now+2,'FIELDS',1,'f') return now+2",
			"return {now, redis.call('HGET','q','f') and 1 or 0}"},
	} {
		t.Run(c.name+" is gone when Dead says so", func(t *testing.T) {
			reads := map[int64]int{}
			for range 100 {
				var deadline int64
				fmt.Sscan(srv.eval(c.write), &deadline)
				for over := false; !over; {
					var now, alive int64
					fmt.Sscanf(srv.eval(c.read), "[%d %d]", &now, &alive)
					over = expiry.Dead(deadline, now)
					if over == (alive == 1) {
						t.Fatalf("at %+d ms from the deadline: readable %v, Dead %v", now-deadline, alive == 1, over)
					}
					reads[now-deadline]++
				}
			}
			t.Logf("reads by distance from the deadline: in the last millisecond %d, in the next %d, of %v", reads[0], reads[1], reads)
		})
	}
}

// Redis 7.0's cycle decides like its readers. That of Redis 8.0 already deletes in the last millisecond, so a key that nobody reads ends up
// to a millisecond earlier than for a reader. Ours decides like the readers of both.
func TestTheCycleOfRedis8DeletesInTheLastMillisecond(t *testing.T) {
	for _, f := range []realserver.Flavour{realserver.Redis8, realserver.Redis7} {
		t.Run(f.String(), func(t *testing.T) {
			srv := start(t, realserver.Options{Flavour: f, Config: []string{"hz 500"}})
			const keys = 200
			early, polls := 0, 0
			for range 4 {
				var first, now, left int64
				fmt.Sscan(srv.eval("for i = 0, ARGV[1]-1 do redis.call('SET', 'k'..i, 'v', 'PXAT', now+30+i) end return now+30", keys), &first)
				for left = 1; left > 0; polls++ {
					fmt.Sscanf(srv.eval("return {now, redis.call('DBSIZE')}"), "[%d %d]", &now, &left)
					switch dead := min(keys, max(0, now-first)); { // dead: first .. now-1
					case keys-left > dead+1:
						t.Fatalf("%d deleted when %d were dead and one in its last millisecond", keys-left, dead)
					case keys-left == dead+1:
						early++
					}
				}
			}
			t.Logf("%s: in %d of %d looks a key was gone during its last millisecond", srv.Version(), early, polls)
			if f == realserver.Redis7 && early > 0 {
				t.Error("7.0 deleted in the last millisecond")
			}
		})
	}
}

// BenchmarkRedisCycle reports the processor time that the active cycle of a real server takes for each key found dead and for each found
// alive: the costs in the simulation of deadplot. The lowest of several rounds counts.
func BenchmarkRedisCycle(b *testing.B) {
	const keys = 200_000
	srv := start(b, realserver.Options{Config: []string{"appendonly no"}})
	figure := func(section, field string) float64 {
		_, after, _ := strings.Cut(srv.do("INFO", section).Text, "\n"+field+":")
		number, _, _ := strings.Cut(after, "\r")
		f, err := strconv.ParseFloat(number, 64)
		if err != nil {
			b.Fatal(err)
		}
		return f
	}
	spent := func() (us float64) { return 1e6 * (figure("cpu", "used_cpu_user") + figure("cpu", "used_cpu_sys")) }
	write := func(ttl int) {
		for from := 0; from < keys; from += 10_000 {
			srv.eval("for i = 1, 10000 do redis.call('SET', 'k'..(ARGV[1]+i), 'v', 'PXAT', now+ARGV[2]) end return 1", from, ttl)
		}
	}
	wait := func() { srv.do("BLPOP", "nothing", 1) } // polling would cost more than the cycle
	dead, alive := math.Inf(1), math.Inf(1)
	for b.Loop() {
		srv.debug(0)
		write(-1)
		before := spent()
		srv.debug(1)
		for srv.do("DBSIZE").Int > 0 {
			wait()
		}
		dead = min(dead, (spent()-before)/keys)

		write(3_600_000)
		srv.do("CONFIG", "SET", "hz", 500)
		turn := func(active int) float64 { // processor time of the event loop, mostly for the 500 runs a second
			srv.debug(active)
			us, turns := spent(), figure("stats", "eventloop_cycles")
			wait()
			wait()
			return (spent() - us) / (figure("stats", "eventloop_cycles") - turns)
		}
		alive = min(alive, (turn(1)-turn(0))/20) // 20 tested in each run
		srv.do("CONFIG", "SET", "hz", 10)
		srv.do("FLUSHALL")
	}
	b.ReportMetric(dead, "us/dead")
	b.ReportMetric(alive, "us/alive")
}

// BenchmarkRedisHoldsDeadKeys is the burst of docs/decisions/0003 on a real server: a million keys with lives uniform in 1 to 10 s, no
// readers, one writing client. It takes half a minute and reports how many keys were held beyond their deadline.
func BenchmarkRedisHoldsDeadKeys(b *testing.B) {
	const keys, batch = 1_000_000, 5000
	for _, f := range []realserver.Flavour{realserver.Redis8, realserver.Redis7} {
		b.Run(f.String(), func(b *testing.B) {
			srv := start(b, realserver.Options{Flavour: f, Config: []string{"appendonly no"}})
			for b.Loop() {
				r := rand.New(rand.NewPCG(1, 2))
				ttls := make([]int64, keys)
				for i := range ttls {
					ttls[i] = 1000 + r.Int64N(9000)
				}
				write := func(from int, start int64) {
					args := []any{"EVAL", "for i = 2, #ARGV do redis.call('SET', 'k'..(ARGV[1]+i), 'v', 'PXAT', ARGV[i]) end return 1", 0, from}
					for _, ttl := range ttls[from : from+batch] {
						args = append(args, start+ttl)
					}
					srv.do(args...)
				}
				begun := time.Now()
				write(0, begun.UnixMilli()+1e6)
				// The lives begin when all keys are written: after three times as long as the first batch predicts.
				start := begun.Add(time.Second + 3*keys/batch*time.Since(begun)).UnixMilli()
				for from := 0; from < keys; from += batch {
					write(from, start)
				}
				if late := time.Now().UnixMilli() - start; late > 0 {
					b.Fatalf("the keys were written %d ms too late", late)
				}
				slices.Sort(ttls)
				last := start + ttls[keys-1]
				if time.Now().UnixMilli() > start {
					b.Fatal("the keys took more than 20 s to write")
				}
				var worst, share, area float64 // area: dead keys times ms
				before, writes, now, left := start, 0, int64(0), int64(1)
				for left > 0 {
					for range 100 {
						srv.conn.Add("SET", "written", "v", "EX", "3600")
					}
					srv.conn.Add("DEL", "written")
					srv.conn.Add("EVAL", nowMs+"return {now, redis.call('DBSIZE')}", "0")
					look, err := resp.Value{}, srv.conn.Flush()
					for range 102 {
						if err == nil {
							look, err = srv.conn.Reply()
						}
					}
					if err != nil || look.Kind != '*' {
						b.Fatal(look.Text, err)
					}
					fmt.Sscanf(said(look), "[%d %d]", &now, &left)
					if now < start {
						continue
					}
					writes += 100
					over, _ := slices.BinarySearch(ttls, now-start) // that many deadlines are before now
					dead := float64(left) - float64(keys-over)
					if dead > worst {
						worst, share = dead, dead/float64(left)
					}
					area += max(0, dead) * float64(now-before)
					before = now
				}
				b.ReportMetric(worst, "most-dead")
				b.ReportMetric(100*share, "%-of-held-then")
				b.ReportMetric(area/keys/1000, "mean-s-overdue")
				b.ReportMetric(float64(now-last)/1000, "s-after-the-last")
				b.ReportMetric(float64(writes)/float64(now-start)*1000, "writes/s")
			}
		})
	}
}
