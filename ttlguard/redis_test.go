package ttlguard_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/ttlguard"
)

// harmless are the write commands that leave no key without an end that had one, nor create any.
var harmless = strings.Fields(`
	brpoplpush hpersist hsetnx linsert lpushx lset rpushx pfdebug
	migrate xack xackdel xdel xdelex xtrim xclaim xautoclaim xreadgroup xsetid vsetattr
	xgroup|createconsumer xgroup|delconsumer xgroup|destroy xgroup|setid
	function|delete function|flush function|load function|restore`)

// Every write command of Redis 8.0 is judged, or known to be harmless.
func TestEveryWriteCommand(t *testing.T) {
	rdb := realredis.Start(t, realredis.Options{}).Client()
	names, err := rdb.CommandList(t.Context(), &redis.FilterBy{ACLCat: "write"}).Result()
	if err != nil || len(names) < 100 {
		t.Fatalf("%d commands, %v", len(names), err)
	}
	for _, name := range names {
		base, _, _ := strings.Cut(name, "|")
		if !ttlguard.Judges(base) && !slices.Contains(harmless, name) {
			t.Errorf("%s is neither judged nor harmless", name)
		}
	}
}

// What is called safe leaves nothing without a TTL: sequences of commands, sent together, against what PTTL says
// afterwards. Before each, some of the keys are there, with a TTL, as those of a guarded program are.
func TestNoFalseSafe(t *testing.T) {
	rdb := realredis.Start(t, realredis.Options{}).Client()
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	rounds := effort.Times(1000, 4000)
	ctx := t.Context()
	seen := map[string]int{}
	for range rounds {
		before := commands("FLUSHALL;" + strings.Join(pick(r, 1, setups), ";"))
		if len(before) > 1 && r.IntN(3) == 0 {
			before = before[:1]
		}
		lines := pick(r, 1+r.IntN(4), writes)
		asked := []redis.Cmder{}
		for _, key := range keys {
			asked = append(asked, redis.NewDurationCmd(ctx, time.Millisecond, "pttl", key))
		}
		cmds := commands(strings.Join(lines, ";"))
		pipe := rdb.Pipeline()
		pipe.BatchProcess(ctx, slices.Concat(before, cmds, commands("DISCARD;SELECT 0"), asked)...)
		pipe.Exec(ctx)
		judged := map[string]string{"a": "safe", "b": "safe"}
		ttlguard.Judge(cmds, func(key, verdict string) {
			judged[key] = verdict
			seen[verdict]++
		})
		for i, key := range keys {
			if left := asked[i].(*redis.DurationCmd).Val(); left == -1 && judged[key] == "safe" {
				t.Fatalf("%s was called safe and has no TTL after %q; %q", key, before[1:], lines)
			}
		}
	}
	t.Log(seen)
	for _, v := range []string{"safe", "depends", "leaves none"} {
		if seen[v] < rounds/10 {
			t.Errorf("%v came %d times in %d rounds", v, seen[v], rounds)
		}
	}
}

var keys = []string{"a", "b"}

var setups = []string{
	"SET a 1 EX 100; SET b 2 EX 100", "RPUSH a x; EXPIRE a 100", "SADD a x; EXPIRE a 100; SADD b x; EXPIRE b 100",
	"ZADD a 1 x; EXPIRE a 100", "HSET a f v; EXPIRE a 100; SET b 1 EX 100", "SET b 1 EX 100", "XADD a 1-1 f v; EXPIRE a 100",
}

var writes = []string{
	"SET K 1", "SET K 1 EX 100", "SET K 1 PX 100000", "SET K 1 NX", "SET K 1 NX EX 100", "SET K 1 XX", "SET K 1 XX EX 100", "SET K 1 KEEPTTL",
	"SET K 1 EXAT 1", "SET K 1 EXAT 99999999999", "SET K 1 EX 0", "SET K 1 EX -1", "SET K 1 GET EX 100", "SETNX K 1", "SETEX K 100 1", "SETEX K 0 1",
	"PSETEX K 100000 1", "GETSET K 1", "MSET K 1 L 2", "MSETNX K 1 L 2", "APPEND K 1", "INCR K", "INCRBYFLOAT K 1.5", "SETRANGE K 1 x", "SETBIT K 1 1",
	"GETDEL K", "GETEX K EX 100", "GETEX K PERSIST", "GETEX K EXAT 1", "GETEX K", "DEL K", "DEL K L", "UNLINK K", "BITFIELD K SET u8 0 1",
	"EXPIRE K 100", "EXPIRE K 100 NX", "EXPIRE K 100 XX", "EXPIRE K 100 GT", "EXPIRE K 100 LT", "EXPIRE K 0", "EXPIRE K -1 NX", "EXPIRE K 9223372036854775",
	"EXPIRE K x", "PEXPIRE K 100000", "EXPIREAT K 1", "EXPIREAT K 99999999999", "PEXPIREAT K 9223372036854775807", "PEXPIREAT K 1 GT", "PERSIST K",
	"RENAME K L", "RENAMENX K L", "COPY K L", "COPY K L REPLACE", "COPY K L DB 1", "MOVE K 1", "BITOP NOT K L", "PFADD K x", "PFMERGE K L",
	"RPUSH K x", "LPUSH K x", "RPUSHX K x", "LPOP K", "RPOP K", "LTRIM K 1 0", "LREM K 0 x", "LMOVE K L LEFT RIGHT", "RPOPLPUSH K L", "LMPOP 1 K LEFT", "LSET K 0 y",
	"SADD K x", "SREM K x", "SPOP K", "SMOVE K L x", "SUNIONSTORE K L", "SINTERSTORE K L", "SDIFFSTORE K L M", "SORT K ALPHA STORE L",
	"ZADD K 1 x", "ZINCRBY K 1 x", "ZREM K x", "ZPOPMIN K", "ZUNIONSTORE K 1 L", "ZRANGESTORE K L 0 -1", "ZREMRANGEBYRANK K 0 -1", "GEOADD K 1 1 x",
	"HSET K f v", "HSETNX K f v", "HINCRBY K n 1", "HDEL K f", "HSETEX K EX 100 FIELDS 1 f v", "HGETEX K EXAT 1 FIELDS 1 f", "HGETDEL K FIELDS 1 f", "HEXPIRE K 0 FIELDS 1 f",
	"HSETEX K EXAT 1 FIELDS 1 f v", "XADD K * f v", "XGROUP CREATE K g $ MKSTREAM", "FLUSHALL", "FLUSHDB",
	"SET K 1 EX 100 PX 100", "SET K 1 EX 100 KEEPTTL", "SET K 1 NX XX EX 100", "SET K 1 EX 100 NONSENSE", "SETEX K 100", "SETEX K 100 1 2", "EXPIRE K 100 NX LT",
	"EXPIRE K 100 NONSENSE", "EXPIRE K", "GETEX K EX 100 PX 100", "GETEX K EX 100 PERSIST", "SORT K BY store ALPHA STORE L", "SORT K BY w_* ALPHA STORE L",
	"GEORADIUSBYMEMBER K x 100 km STORE L", "RESTORE K 0 x", "COPY K L DB 0 REPLACE", "COPY K L DB 1 REPLACE", "SELECT 0", "SELECT 1", "SELECT 99", "SELECT 0",
	"MULTI", "EXEC", "DISCARD", "MULTI", "EXEC", "GET", "NONSENSE",
	"EVAL return{redis.call('SET',KEYS[1],1)} 1 K",
}

// pick draws n lines, with K and L replaced by the keys.
func pick(r *rand.Rand, n int, from []string) (lines []string) {
	for range n {
		names := slices.Clone(keys)
		if r.IntN(2) == 0 {
			slices.Reverse(names)
		}
		words := strings.Fields(from[r.IntN(len(from))])
		for i, w := range words {
			switch w {
			case "K":
				words[i] = names[0]
			case "L":
				words[i] = names[1]
			}
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}
