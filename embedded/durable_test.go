package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

func TestMain(m *testing.M) { os.Exit(processes.Main(m, "journal.(*")) }

func init() { processes.Roles["durable"] = durableWriter }

// durableWriter writes from several goroutines to a DB in the directory MAYFLY_TEST_DIR, and prints the key of each acknowledged write.
func durableWriter() int {
	db, err := embedded.Open(embedded.Options{Dir: os.Getenv("MAYFLY_TEST_DIR"), Fsync: os.Getenv("MAYFLY_TEST_FSYNC")})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	out := bufio.NewWriter(os.Stdout)
	var mu sync.Mutex
	run, ctx := strconv.FormatInt(time.Now().UnixNano(), 36), context.Background()
	for g := range 4 {
		go func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%s:%d:%d", run, g, i)
				pipe := db.Client().TxPipeline()
				pipe.Set(ctx, key, strings.Repeat("v", i%500), time.Hour)
				pipe.RPush(ctx, "log:"+strconv.Itoa(g), key)
				if _, err := pipe.Exec(ctx); err != nil {
					return
				}
				mu.Lock()
				fmt.Fprintf(out, "%s %d\n", key, time.Now().UnixMilli())
				out.Flush()
				mu.Unlock()
			}
		}()
	}
	for {
		db.Client().BgRewriteAOF(ctx)
		<-time.After(time.Millisecond)
	}
}

// A process is killed again and again in the middle of writes and compactions, which go on all the time. Nothing that "always" acknowledged
// is lost; with "everysec", nothing acknowledged more than a second before; and no transaction is half there.
func TestKilledInTheMiddleOfWrites(t *testing.T) {
	for _, fsync := range []string{"always", "everysec"} {
		t.Run(fsync, func(t *testing.T) {
			dir := t.TempDir()
			acknowledged := map[string]int64{}
			for round := range effort.Times(2, 100) {
				p := processes.Start(t, "durable", "", "MAYFLY_TEST_DIR="+dir, "MAYFLY_TEST_FSYNC="+fsync)
				var last int64
				some := 1 + rand.IntN(200)
				for n := 0; ; n++ {
					if n == some {
						p.Cmd.Process.Kill()
					}
					line, err := p.Line()
					if err != nil {
						break
					}
					key, at, ok := strings.Cut(strings.TrimSpace(line), " ")
					if ms, err := strconv.ParseInt(at, 10, 64); ok && err == nil {
						acknowledged[key], last = ms, ms
					} else if strings.HasPrefix(line, "error") {
						t.Fatal(line)
					}
				}
				p.Cmd.Wait()
				db, err := embedded.Open(embedded.Options{Dir: dir})
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				ctx, rdb := context.Background(), db.Client()
				listed, lists := map[string]bool{}, 0
				for g := range 4 {
					lists += int(rdb.Exists(ctx, "log:"+strconv.Itoa(g)).Val())
					for _, key := range rdb.LRange(ctx, "log:"+strconv.Itoa(g), 0, -1).Val() {
						listed[key] = true
					}
				}
				keys := 0
				for key, at := range acknowledged {
					if n := rdb.Exists(ctx, key).Val(); n == 1 && listed[key] {
						keys++
					} else if n == 1 || listed[key] {
						t.Errorf("round %d: %s is there by half", round, key)
					} else if fsync == "always" || at < last-1000 {
						t.Errorf("round %d: %s was acknowledged %d ms before the last and is lost", round, key, last-at)
					}
				}
				if n := int(rdb.DBSize(ctx).Val()); n != len(listed)+lists {
					t.Errorf("round %d: %d keys are listed of %d", round, len(listed), n-lists)
				}
				if err := db.Close(ctx); err != nil {
					t.Error(err)
				}
				for key := range acknowledged { // a lost key is not checked again
					if !listed[key] {
						delete(acknowledged, key)
					}
				}
			}
		})
	}
}

// fill writes something of every type, with and without a TTL.
func fill(t *testing.T, rdb *redis.Client, fields bool) {
	t.Helper()
	ctx := t.Context()
	big := strings.Repeat("long ", 100)
	pipe := rdb.Pipeline()
	for db := range 2 {
		pipe.Do(ctx, "SELECT", db)
		pipe.Set(ctx, "string", "v", 0)
		pipe.Set(ctx, "number", 12345, time.Hour)
		pipe.Set(ctx, "long", big, time.Minute)
		pipe.Set(ctx, "compresses", strings.Repeat("a", 5000), time.Minute)
		pipe.Set(ctx, "binary\x00\r\n", "\x00\xff\r\n$1", time.Hour)
		pipe.PExpireAt(ctx, "string", time.UnixMilli(4_000_000_000_123))
		pipe.RPush(ctx, "list", "a", 1, -70000, big)
		for i := range 600 {
			pipe.RPush(ctx, "biglist", i, big[:i%100])
			pipe.SAdd(ctx, "bigset", "m"+strconv.Itoa(i))
			pipe.SAdd(ctx, "ints", i*i*i)
			pipe.ZAdd(ctx, "bigzset", redis.Z{Score: float64(i) / 3, Member: "m" + strconv.Itoa(i)})
			pipe.HSet(ctx, "bighash", "f"+strconv.Itoa(i), i)
		}
		pipe.SAdd(ctx, "set", "a", "b", 3)
		pipe.SAdd(ctx, "fewints", 1, 2, 3)
		pipe.ZAdd(ctx, "zset", redis.Z{Score: 1.5, Member: "a"}, redis.Z{Score: -1, Member: "b"})
		pipe.HSet(ctx, "hash", "f", "v", "n", 7)
		pipe.Expire(ctx, "hash", time.Hour)
		pipe.PFAdd(ctx, "hll", "a", "b", "c")
		if fields {
			pipe.HSet(ctx, "timed", "f", "v", "g", "w", "x", "y")
			pipe.HExpire(ctx, "timed", time.Hour, "f")
			pipe.HPExpireAt(ctx, "timed", time.UnixMilli(4_000_000_000_001), "g")
			pipe.HExpireAt(ctx, "bighash", time.Unix(4_000_000_000, 0), "f1", "f2")
		}
		pipe.Eval(ctx, "redis.call('INCR', KEYS[1]) return redis.call('PEXPIRE', KEYS[1], 90000)", []string{"counted"})
	}
	pipe.Do(ctx, "SELECT", 0)
	if cmds, err := pipe.Exec(ctx); err != nil {
		for _, c := range cmds {
			if c.Err() != nil {
				t.Fatal(c)
			}
		}
	}
}

// contents is all that a server holds, a line for each key: its deadline to the millisecond, and its value.
func contents(t *testing.T, o *redis.Options) string {
	t.Helper()
	var lines []string
	for db := range 2 {
		o := *o
		o.DB = db
		rdb := redis.NewClient(&o)
		defer rdb.Close()
		ctx := t.Context()
		for _, key := range rdb.Keys(ctx, "*").Val() {
			var value any
			switch kind := rdb.Type(ctx, key).Val(); kind {
			case "string":
				value = rdb.Get(ctx, key).Val()
			case "list":
				value = rdb.LRange(ctx, key, 0, -1).Val()
			case "set":
				members := rdb.SMembers(ctx, key).Val()
				slices.Sort(members)
				value = members
			case "zset":
				value = rdb.ZRangeWithScores(ctx, key, 0, -1).Val()
			case "hash":
				all := rdb.HGetAll(ctx, key).Val()
				var fields []string
				for f, v := range all {
					end, _ := rdb.HPExpireTime(ctx, key, f).Result()
					if len(end) == 1 && end[0] == -1 {
						end = nil
					}
					fields = append(fields, fmt.Sprintf("%q:%q:%v", f, v, end))
				}
				slices.Sort(fields)
				value = fields
			default:
				value = kind
			}
			lines = append(lines, fmt.Sprintf("%d %q %d %q", db, key, rdb.PExpireTime(ctx, key).Val(), fmt.Sprint(value)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// same compares two contents and names the first line that differs.
func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got == want && got != "" {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("%s:\n got %.300s\nwant %.300s", what, g[i], w[i])
		}
	}
	t.Fatalf("%s: %d keys, want %d", what, len(g), len(w))
}

// clientOptions are the options of a DB's own client.
func clientOptions(db *embedded.DB) *redis.Options {
	o := *db.Client().Options()
	return &o
}

// Redis 8.0 and 8.6 start on the directory that the engine wrote and hold the same data; redis-check-aof finds no fault; and the engine
// starts on what that Redis then wrote.
func TestRedisReadsTheJournalAndWritesIt(t *testing.T) {
	for _, flavour := range []realredis.Flavour{realredis.Redis8, realredis.Redis86} {
		for _, compacted := range []bool{false, true} {
			t.Run(fmt.Sprint(flavour, " compacted=", compacted), func(t *testing.T) { testJournalAtRedis(t, flavour, compacted) })
		}
	}
}

func testJournalAtRedis(t *testing.T, flavour realredis.Flavour, compacted bool) {
	check := realredis.Tool(t, flavour, "redis-check-aof")
	dir := t.TempDir()
	os.Chmod(dir, 0o777)
	db := open(t, embedded.Options{Dir: dir})
	fill(t, db.Client(), true)
	if compacted {
		if err := db.Client().BgRewriteAOF(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		for strings.Contains(db.Client().Info(t.Context(), "persistence").Val(), "aof_rewrite_in_progress:1") {
			<-time.After(time.Millisecond)
		}
	}
	db.Client().Set(t.Context(), "late", "v", time.Hour)
	want := contents(t, clientOptions(db))
	if err := db.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	out, err := exec.Command(check, filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "All AOF files and manifest are valid") {
		t.Errorf("redis-check-aof: %v\n%s", err, out)
	}
	srv := realredis.Start(t, realredis.Options{Flavour: flavour, Config: []string{"dir " + dir, "appendonly yes"}})
	same(t, "Redis on the engine's journal", contents(t, srv.Options()), want)

	rdb := srv.Client()
	rdb.Set(t.Context(), "by redis", "v", time.Hour)
	fill(t, rdb, true)
	rdb.HExpire(t.Context(), "timed", 2*time.Hour, "f")
	want = contents(t, srv.Options())
	srv.Stop()
	back := open(t, embedded.Options{Dir: dir})
	same(t, "the engine on Redis's files", contents(t, clientOptions(back)), want)
	if r := back.Recovered; r.Keys == 0 || r.Cut != 0 {
		t.Errorf("%+v", r)
	}
}

// The engine opens what Redis 7, Redis 8 and Valkey wrote: with a base in RDB format and as commands, before and after a rewrite.
func TestTheEngineReadsWhatServersWrote(t *testing.T) {
	for _, flavour := range []realredis.Flavour{realredis.Redis8, realredis.Redis86, realredis.Redis7, realredis.Valkey} {
		for _, config := range []string{"aof-use-rdb-preamble yes", "aof-use-rdb-preamble no", "aof-timestamp-enabled yes", "rdbcompression no"} {
			t.Run(flavour.String()+" "+config, func(t *testing.T) {
				dir := t.TempDir()
				os.Chmod(dir, 0o777)
				srv := realredis.Start(t, realredis.Options{Flavour: flavour, Config: []string{"dir " + dir, "appendonly yes", config}})
				rdb, ctx := srv.Client(), t.Context()
				fill(t, rdb, flavour.HasFieldTTL())
				if err := rdb.BgRewriteAOF(ctx).Err(); err != nil && !strings.Contains(err.Error(), "in progress") {
					t.Fatal(err)
				}
				for strings.Contains(rdb.Info(ctx, "persistence").Val(), "aof_rewrite_in_progress:1") || strings.Contains(rdb.Info(ctx, "persistence").Val(), "aof_rewrite_scheduled:1") {
					<-time.After(5 * time.Millisecond)
				}
				rdb.Set(ctx, "late", "v", time.Hour)
				rdb.Append(ctx, "late", "w")
				want := contents(t, srv.Options())
				srv.Stop()
				db := open(t, embedded.Options{Dir: dir})
				same(t, "the engine", contents(t, clientOptions(db)), want)
			})
		}
	}
}

func TestADirectoryIsOpenedOnce(t *testing.T) {
	dir := t.TempDir()
	db := open(t, embedded.Options{Dir: dir, Fsync: "always"})
	if _, err := embedded.Open(embedded.Options{Dir: dir}); !errors.Is(err, mayfly.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	rdb, ctx := db.Client(), t.Context()
	if got := rdb.ConfigGet(ctx, "append*").Val(); got["appendonly"] != "yes" || got["appendfsync"] != "always" {
		t.Errorf("CONFIG GET: %v", got)
	}
	if err := rdb.ConfigSet(ctx, "appendfsync", "no").Err(); err != nil || rdb.ConfigGet(ctx, "appendfsync").Val()["appendfsync"] != "no" {
		t.Errorf("CONFIG SET appendfsync: %v", err)
	}
	if err := rdb.ConfigSet(ctx, "appendonly", "no").Err(); err == nil {
		t.Error("the journal was left off")
	}
}
