package resp_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

var frames = []struct {
	name         string
	write        func(w *resp.Writer)
	resp2, resp3 string
}{
	{"a status", func(w *resp.Writer) { w.Simple("OK") }, "+OK\r\n", "+OK\r\n"},
	{"an error", func(w *resp.Writer) { w.Error("ERR no\r\nway\r\n") }, "-ERR no  way\r\n", "-ERR no  way\r\n"},
	{"an integer", func(w *resp.Writer) { w.Int(-12) }, ":-12\r\n", ":-12\r\n"},
	{"a digit", func(w *resp.Writer) { w.Int(7) }, ":7\r\n", ":7\r\n"},
	{"a bulk", func(w *resp.Writer) { w.Bulk([]byte("a\r\nb")) }, "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"},
	{"a bulk of a string", func(w *resp.Writer) { w.BulkString("") }, "$0\r\n\r\n", "$0\r\n\r\n"},
	{"a bulk of an integer", func(w *resp.Writer) { w.BulkInt(-100) }, "$4\r\n-100\r\n", "$4\r\n-100\r\n"},
	{"a null", (*resp.Writer).Null, "$-1\r\n", "_\r\n"},
	{"a null array", (*resp.Writer).NullArray, "*-1\r\n", "_\r\n"},
	{"an array", func(w *resp.Writer) { w.Array(12) }, "*12\r\n", "*12\r\n"},
	{"a map", func(w *resp.Writer) { w.Map(2) }, "*4\r\n", "%2\r\n"},
	{"a set", func(w *resp.Writer) { w.Set(2) }, "*2\r\n", "~2\r\n"},
	{"a push", func(w *resp.Writer) { w.Push(2) }, "*2\r\n", ">2\r\n"},
	{"a double", func(w *resp.Writer) { w.Double(1.5) }, "$3\r\n1.5\r\n", ",1.5\r\n"},
	{"true", func(w *resp.Writer) { w.Bool(true) }, ":1\r\n", "#t\r\n"},
	{"false", func(w *resp.Writer) { w.Bool(false) }, ":0\r\n", "#f\r\n"},
	{"a big number", func(w *resp.Writer) { w.BigNumber("123") }, "$3\r\n123\r\n", "(123\r\n"},
	{"verbatim text", func(w *resp.Writer) { w.Verbatim("txt", "hi") }, "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"},
	{"a raw frame", func(w *resp.Writer) { w.Raw("+OK\r\n") }, "+OK\r\n", "+OK\r\n"},
	{"an array counted late", func(w *resp.Writer) { m := w.Mark(); w.Int(1); w.ArrayAt(m, 1) }, "*1\r\n:1\r\n", "*1\r\n:1\r\n"},
	{"a reply taken back", func(w *resp.Writer) { w.Int(1); m := w.Mark(); w.Int(2); w.Rewind(m) }, ":1\r\n", ":1\r\n"},
}

func TestRepliesInBothProtocols(t *testing.T) {
	for _, f := range frames {
		for proto, want := range map[int]string{2: f.resp2, 3: f.resp3} {
			w := resp.Writer{Proto: proto}
			f.write(&w)
			if got := string(w.Bytes()); got != want {
				t.Errorf("%s in RESP%d: got %q, want %q", f.name, proto, got, want)
			}
		}
	}
}

// The division of the output into chunks changes nothing, wherever marks are.
func TestLongRepliesAreTheSameAsShortOnes(t *testing.T) {
	for _, before := range []int{0, 1, 1000, 20_000, 70_000} {
		for _, bulk := range []int{0, 5, 16<<10 - 1, 16 << 10, 100_000} {
			value := bytes.Repeat([]byte{'v'}, bulk)
			var w resp.Writer
			var want strings.Builder
			for range before / 5 {
				w.Simple("OK")
				want.WriteString("+OK\r\n")
			}
			outer := w.Mark()
			inner := w.Mark()
			for range 3 {
				w.Bulk(value)
			}
			w.ArrayAt(inner, 3)
			taken := w.Mark()
			for range 3 {
				w.BulkString(string(value))
			}
			w.Rewind(taken)
			w.Int(1)
			w.ArrayAt(outer, 2)

			var frame resp.Writer
			frame.Bulk(value)
			want.WriteString("*2\r\n*3\r\n" + strings.Repeat(string(frame.Bytes()), 3) + ":1\r\n")
			if n := w.Len(); n != want.Len() {
				t.Errorf("before %d, bulk %d: Len %d, want %d", before, bulk, n, want.Len())
			}
			if got := string(w.Bytes()); got != want.String() {
				t.Errorf("before %d, bulk %d: differs", before, bulk)
			}
			if got := bytes.Join(w.Take(nil), nil); string(got) != want.String() || w.Len() != 0 {
				t.Errorf("before %d, bulk %d: the chunks differ, or %d bytes are left", before, bulk, w.Len())
			}
		}
	}
}

func TestALargeReplyIsHeldOnce(t *testing.T) {
	value := make([]byte, 1000)
	const n = 20_000
	got := allocated(func() {
		var w resp.Writer
		for range n {
			w.Bulk(value)
		}
	})
	if limit := int64(n * 1000 * 5 / 4); got > limit {
		t.Errorf("%d bytes allocated for a reply of %d", got, n*1000)
	}
}

func TestReplyingAllocatesNothing(t *testing.T) {
	for _, proto := range []int{2, 3} {
		w := resp.Writer{Proto: proto}
		value := []byte("a value of some length")
		var chunks [][]byte
		allocs := testing.AllocsPerRun(100, func() {
			for range 100 {
				w.Simple("OK")
				w.Int(123456)
				w.Bulk(value)
				w.BulkString("value")
				w.BulkInt(99999)
				w.Null()
				w.Array(2)
				w.Double(1.25)
				w.Double(3)
				w.Bool(true)
				w.Error("ERR no")
			}
			chunks = w.Take(chunks[:0])
			for _, c := range chunks {
				w.Reuse(c)
			}
		})
		if allocs != 0 {
			t.Errorf("RESP%d: %v allocations", proto, allocs)
		}
	}
}

// The right column comes from Redis 8.0.2: ZADD k <number> m; ZSCORE k m.
var doubles = []struct {
	f    float64
	want string
}{
	{0, "0"}, {math.Copysign(0, -1), "-0"}, {1, "1"}, {-1, "-1"}, {0.1, "0.1"}, {-0.1, "-0.1"}, {1.5, "1.5"}, {3.0000000001, "3.0000000001"},
	{1e15, "1000000000000000"}, {1e17, "100000000000000000"}, {4e18, "4000000000000000000"}, {1e19, "1e+19"}, {1e20, "1e+20"}, {1e21, "1e+21"}, {1.5e21, "1.5e+21"},
	{123456789012345678901, "123456789012345680000"}, {1e-5, "0.00001"}, {1e-6, "0.000001"}, {1e-7, "1e-7"}, {1.5e-7, "1.5e-7"}, {1.23e-10, "1.23e-10"},
	{math.MaxFloat64, "1.7976931348623157e+308"}, {math.SmallestNonzeroFloat64, "5e-324"}, {math.Pi, "3.141592653589793"}, {-math.Pi * 1e-3, "-0.0031415926535897933"},
	{math.Inf(1), "inf"}, {math.Inf(-1), "-inf"}, {math.NaN(), "nan"},
}

func TestDoublesAsRedisWritesThem(t *testing.T) {
	for _, d := range doubles {
		if got := string(resp.AppendDouble(nil, d.f)); got != d.want {
			t.Errorf("%g: got %s, want %s", d.f, got, d.want)
		}
	}
}
