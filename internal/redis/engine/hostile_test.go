package engine

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// hostile are arguments that have broken servers, and a few meaningful ones.
var hostile = []string{
	"", "k0", "k1", "k2", "a", "f", "0", "1", "-1", "2", "10", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
	"-9223372036854775807", "4294967296", "2147483648", "-2147483649", "1.5", "inf", "-inf", "nan", "1e308", "1e-400", "(1", "[a", "-", "+", "*",
	"[", "\\", "\x00", "\xff\xff", "\r\n", "EX", "PX", "PXAT", "KEEPTTL", "NX", "XX", "GT", "LT", "CH", "INCR", "GET", "SET", "COUNT", "MATCH", "TYPE",
	"LIMIT", "BY", "ALPHA", "STORE", "WITHSCORES", "WITHVALUES", "WEIGHTS", "AGGREGATE", "BYSCORE", "BYLEX", "REV", "FIELDS", "FNX", "LEFT", "RIGHT",
	"BEFORE", "u8", "i64", "#1", "OVERFLOW", "SAT", "REPLACE", "DB", "ON", "BCAST", "PREFIX", "return 1", "AND", "NOT", "BIT", "IDX", "MINMATCHLEN",
	strings.Repeat("x", 100), strings.Repeat("ab", 3000),
}

// Whatever is sent, every command replies exactly once, or waits, or was told not to reply; nothing panics, and the test ends.
func TestNoCommandBreaks(t *testing.T) {
	t.Run("alone", func(t *testing.T) { breakIt(t, Options{}) })
	t.Run("in a cluster", func(t *testing.T) { breakIt(t, Options{Cluster: &ClusterOptions{Cluster: NewCluster(2, 1)}}) })
}

func breakIt(t *testing.T, o Options) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	n := effort.Times(15_000, 150_000)
	var names [][]string
	for _, family := range tables {
		for i := range family {
			names = append(names, []string{family[i].Name})
			for _, sub := range family[i].Sub {
				names = append(names, strings.Split(sub.Name, "|"))
			}
		}
	}
	o.Seed = seed
	e := New(o)
	e.settings.maxBulk = 64 << 10
	now := int64(1_800_000_000_000_000)
	sessions := make([]*Session, 4)
	for i := range n {
		at := r.IntN(len(sessions))
		s := sessions[at]
		if s == nil || s.Closing() || r.IntN(500) == 0 {
			if s != nil {
				e.Drop(s)
			}
			s = e.NewSession(SessionOptions{Now: now})
			sessions[at] = s
		}
		now += r.Int64N(2000)
		if s.Waiting() {
			e.Tick(now + 1e7)
			if s.Waiting() {
				e.Drop(s)
				sessions[at] = nil
			}
			continue
		}
		words := names[r.IntN(len(names))]
		args := [][]byte{}
		for _, w := range words {
			args = append(args, []byte(w))
		}
		for range r.IntN(8) {
			args = append(args, []byte(hostile[r.IntN(len(hostile))]))
		}
		if shutsUp(args) {
			continue
		}
		before, _ := replies(t, s)
		outcome := e.Do(now, s, args)
		for outcome == Yielded {
			outcome = e.Resume(now, s)
		}
		if s.IsReplica() { // it does not run commands any more
			for s.Syncing() {
				e.SyncPiece(s)
			}
			e.Drop(s)
			sessions[at] = nil
			continue
		}
		got, text := replies(t, s)
		if got != 1 && outcome != Blocked && !severalReplies(args) {
			t.Fatalf("step %d: %q: %d replies (%d before): %.200s", i, args, got, before, text)
		}
		if outcome == Close {
			e.Drop(s)
			sessions[at] = nil
		}
	}
}

// shutsUp reports whether args would silence later replies, or stop the clock.
func shutsUp(args [][]byte) bool {
	return len(args) > 1 && (is(args[1], "REPLY") || is(args[0], "DEBUG"))
}

// severalReplies reports whether args may get several replies, or none.
func severalReplies(args [][]byte) bool {
	name := strings.ToLower(string(args[0]))
	return strings.HasSuffix(name, "subscribe") || name == "post" || name == "replconf"
}

// replies counts the replies in the Out of a session, without pushes, and empties it.
func replies(t *testing.T, s *Session) (n int, text []byte) {
	text = bytes.Clone(s.Out.Bytes())
	s.Out.Take(nil)
	for r := resp.NewReader(bytes.NewReader(text)); ; {
		v, err := r.Read()
		if err != nil {
			if r.Buffered() > 0 {
				t.Fatalf("%v in %.300q", err, text)
			}
			return n, text
		}
		if v.Kind != '>' && !(v.Kind == '*' && len(v.List) > 2 && strings.HasSuffix(v.List[0].Text, "message")) {
			n++
		}
	}
}

// FuzzArguments sends what a client may send as the arguments of any command, split at zero bytes, and expects one reply.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		"SET\x00k\x00v\x00PX\x0010", "ZRANGE\x00z\x00(1\x00+inf\x00BYSCORE\x00LIMIT\x000\x00-1", "BITFIELD\x00k\x00SET\x00u63\x00#1\x00-1", "SORT\x00k\x00BY\x00w*->f\x00GET\x00#",
		"SCAN\x00 +1\x00MATCH\x00[a-\x00COUNT\x002", "CONFIG\x00SET\x00maxmemory\x001gb", "LMPOP\x002\x00a\x00b\x00LEFT\x00COUNT\x001", "GETEX\x00k\x00PXAT\x009223372036854775807",
		"HEXPIRE\x00h\x0010\x00FIELDS\x001\x00f", "CLIENT\x00TRACKING\x00on\x00bcast\x00prefix\x00p", "COMMAND\x00GETKEYS\x00eval\x00x\x001\x00k", "XX\x00\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var args [][]byte
		for arg := range strings.SplitSeq(line, "\x00") {
			args = append(args, []byte(arg))
		}
		if shutsUp(args) || severalReplies(args) || is(args[0], "HOST:") || strings.HasPrefix(strings.ToLower(line), "eval") {
			t.Skip("replies otherwise")
		}
		e := New(Options{Seed: 1})
		e.settings.maxBulk = 64 << 10
		s := e.NewSession(SessionOptions{Now: 1})
		for _, fill := range []string{"RPUSH\x00a\x00x", "HSET\x00h\x00f\x001", "ZADD\x00z\x001\x00m", "SET\x00k\x00v"} {
			e.Do(1, s, bytes.Split([]byte(fill), []byte{0}))
		}
		replies(t, s)
		outcome := e.Do(2, s, args)
		if n, text := replies(t, s); n != 1 && outcome != Blocked {
			t.Errorf("%q: %d replies: %.200q", args, n, text)
		}
	})
}
