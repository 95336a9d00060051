package resp_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/realserver"
	"github.com/mayflycache/mayfly/internal/testkit/wire"
)

// The Parser reads the same commands as a real Redis. The test sends commands that Redis does not know, whose errors repeat the arguments,
// and compares the error that ends a stream too.
func TestRedisReadsTheSameCommands(t *testing.T) {
	addr := realserver.Start(t, realserver.Options{}).Addr()
	for _, s := range streams {
		compare(t, addr, s.in)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{"*1\r\n", "*2\r\n", "*3\r\n", "*0\r\n", "*-1\r\n", "$1\r\n", "$2\r\n", "$0\r\n", "$10\r\n", "\r\n", "\n", "\r", " ", "\t", "\v",
		"\x00", "zz", "zzyy", "*", "$", "-", "+", "0", "1", "7", "'", `"`, `\`, `\x`, "41", `\n`, "ab\r\n", "zz\r\n", "'a b'", `"c d" `, "\xff",
		"*2\r\n$2\r\nzz\r\n$3\r\na\r\n\r\n", "zz x y\r\n", strings.Repeat("q", 200)}
	for range effort.Times(1000, 5000) {
		var stream strings.Builder
		for range 1 + draw.IntN(12) {
			stream.WriteString(pieces[draw.IntN(len(pieces))])
		}
		compare(t, addr, stream.String())
		if t.Failed() {
			return
		}
	}
}

func compare(t *testing.T, addr, stream string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(conn, stream)
	conn.(*net.TCPConn).CloseWrite()
	redis, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("%.300q: %v", stream, err)
	}

	var p resp.Parser
	var w resp.Writer
	r := &pieces{rest: []byte(stream), size: 16 << 10}
	for {
		args, err := p.Next()
		if err != nil {
			w.Error("ERR " + err.Error())
			break
		}
		if args == nil {
			if _, err := p.Fill(r); err != nil {
				break
			}
			continue
		}
		answer(&w, args)
	}
	if string(redis) != string(w.Bytes()) {
		t.Errorf("%.300q:\n  ours  %.300q\n  Redis %.300q", stream, w.Bytes(), redis)
	}
}

// answer writes Redis's reply to an unknown command, or to a lone PING.
func answer(w *resp.Writer, args [][]byte) {
	if len(args) == 1 && strings.EqualFold(string(args[0]), "ping") {
		w.Simple("PONG")
		return
	}
	var rest []byte
	for _, a := range args[1:] {
		if len(rest) >= 128 {
			break
		}
		rest = fmt.Appendf(rest, "'%s' ", cut(a, 128-len(rest)))
	}
	w.Error(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", cut(args[0], 128), rest))
}

// cut is what C prints of b with %.*s.
func cut(b []byte, n int) []byte {
	b = b[:min(len(b), n)]
	if i := strings.IndexByte(string(b), 0); i >= 0 {
		b = b[:i]
	}
	return b
}

func TestRedisWritesTheSameDoubles(t *testing.T) {
	addr := realserver.Start(t, realserver.Options{}).Addr()
	conn, err := wire.Dial(t.Context(), addr, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	var numbers []float64
	for _, d := range doubles {
		if !math.IsNaN(d.f) && !(d.f == 0 && math.Signbit(d.f)) { // a small sorted set stores -0 as the integer 0
			numbers = append(numbers, d.f)
		}
	}
	for range 5000 {
		f := math.Float64frombits(draw.Uint64())
		switch draw.IntN(3) {
		case 0:
			f = float64(draw.Int64N(1e9)) / math.Pow10(draw.IntN(14))
		case 1:
			f = draw.NormFloat64() * math.Pow10(draw.IntN(50)-25)
		}
		if !math.IsNaN(f) {
			numbers = append(numbers, f)
		}
	}
	for _, f := range numbers {
		v, err := conn.Do("EVAL", "redis.call('DEL', KEYS[1]); redis.call('ZADD', KEYS[1], ARGV[1], 'm'); return redis.call('ZSCORE', KEYS[1], 'm')",
			"1", "{resp}double", strings.NewReplacer("+Inf", "inf", "-Inf", "-inf").Replace(fmt.Sprintf("%.17g", f)))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(resp.AppendDouble(nil, f)); got != v.Text {
			t.Errorf("%.17g: ours %s, Redis %s", f, got, v.Text)
		}
	}
}
