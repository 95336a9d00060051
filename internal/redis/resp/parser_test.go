package resp_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// parse feeds stream to a Parser in pieces of size bytes and returns the results, one command or error a line.
func parse(p *resp.Parser, stream string, size int) string {
	var out strings.Builder
	r := &pieces{rest: []byte(stream), size: size}
	for {
		args, err := p.Next()
		switch {
		case err != nil:
			fmt.Fprintf(&out, "%v", err)
			return out.String()
		case args != nil:
			for i, a := range args {
				if i > 0 {
					out.WriteByte(' ')
				}
				fmt.Fprintf(&out, "%q", a)
			}
			out.WriteByte('\n')
			continue
		}
		if _, err := p.Fill(r); err != nil {
			if p.Buffered() > 0 {
				fmt.Fprintf(&out, "waits with %d", p.Buffered())
			}
			return out.String()
		}
	}
}

// pieces is a reader that hands out at most size bytes at a time.
type pieces struct {
	rest []byte
	size int
}

func (r *pieces) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.rest[:min(r.size, len(r.rest))])
	r.rest = r.rest[n:]
	return n, nil
}

var streams = []struct{ name, in, want string }{
	{"a multibulk command", "*2\r\n$5\r\nZECHO\r\n$2\r\nhi\r\n", `"ZECHO" "hi"` + "\n"},
	{"arguments are binary", "*2\r\n$5\r\nZECHO\r\n$6\r\n\r\n\x00$*\xff\r\n", `"ZECHO" "\r\n\x00$*\xff"` + "\n"},
	{"an empty argument", "*2\r\n$5\r\nZECHO\r\n$0\r\n\r\n", `"ZECHO" ""` + "\n"},
	{"the bytes after an argument are not looked at", "*1\r\n$4\r\nPINGxy*1\r\n$4\r\nPING\r\n", `"PING"` + "\n" + `"PING"` + "\n"},
	{"nor is the one after a carriage return", "*1\rx$4\rxPING\r\n", `"PING"` + "\n"},
	{"empty and negative commands are skipped", "*0\r\n*-10\r\n*-1\r\n*1\r\n$4\r\nPING\r\n", `"PING"` + "\n"},
	{"an incomplete command waits", "*2\r\n$5\r\nZECHO\r\n$5\r\nhi", "waits with 21"},
	{"an incomplete header waits", "*2\r", "waits with 3"},

	{"no number", "*x\r\n", "Protocol error: invalid multibulk length"},
	{"no digits", "*\r\n", "Protocol error: invalid multibulk length"},
	{"a leading zero", "*01\r\n", "Protocol error: invalid multibulk length"},
	{"minus zero", "*-0\r\n", "Protocol error: invalid multibulk length"},
	{"a plus sign", "*+1\r\n", "Protocol error: invalid multibulk length"},
	{"a space", "* 1\r\n", "Protocol error: invalid multibulk length"},
	{"more arguments than an int holds", "*2147483648\r\n", "Protocol error: invalid multibulk length"},
	{"as many as an int holds", "*2147483647\r\n", "waits with 13"},
	{"a number that overflows", "*18446744073709551617\r\n", "Protocol error: invalid multibulk length"},
	{"a negative bulk", "*1\r\n$-1\r\n", "Protocol error: invalid bulk length"},
	{"no bulk length", "*1\r\n$abc\r\n", "Protocol error: invalid bulk length"},
	{"a bulk of more than 512 MiB", "*1\r\n$536870913\r\n", "Protocol error: invalid bulk length"},
	{"no dollar", "*1\r\nfoo\r\n", "Protocol error: expected '$', got 'f'"},
	{"no dollar but a digit", "*1\r\n4\r\n", "Protocol error: expected '$', got '4'"},
	{"no dollar but a byte over 127", "*1\r\n\xe9\r\n", "Protocol error: expected '$', got '\xe9'"},
	{"commands before an error are returned", "PING\r\n*x\r\nPING\r\n", `"PING"` + "\nProtocol error: invalid multibulk length"},

	{"an inline command", "ZSET k  v\r\n", `"ZSET" "k" "v"` + "\n"},
	{"a bare newline", "PING\nPING\n", `"PING"` + "\n" + `"PING"` + "\n"},
	{"blank lines", "\r\n\n  \r\nPING\r\n", `"PING"` + "\n"},
	{"double quotes", `ZSET "a b" "\x41\n\r\t\b\a\q\"\xZZ"` + "\r\n", `"ZSET" "a b" "A\n\r\t\b\aq\"xZZ"` + "\n"},
	{"single quotes", `ZSET 'a "b' '\n\''` + "\r\n", `"ZSET" "a \"b" "\\n'"` + "\n"},
	{"a quote within a word", `ZSET fo"o b"` + "\r\n", `"ZSET" "foo b"` + "\n"},
	{"empty words", `ZSET "" ''` + "\r\n", `"ZSET" "" ""` + "\n"},
	{"a quote that something follows", `ZSET "a"b` + "\r\n", "Protocol error: unbalanced quotes in request"},
	{"an open double quote", `ZSET "a` + "\r\n", "Protocol error: unbalanced quotes in request"},
	{"an open single quote", `ZSET 'a` + "\r\n", "Protocol error: unbalanced quotes in request"},
	{"a backslash before the end", `ZSET "a\` + "\r\n", "Protocol error: unbalanced quotes in request"},
	{"a NUL hides the end of the line", "PI\x00NG\r\nPING\r\n", "waits with 13"},
	{"and of a length", "*1\x00\r\n$4\r\nPING\r\n", "waits with 15"},

	{"a long line", strings.Repeat("a", 64<<10) + "\n", `"` + strings.Repeat("a", 64<<10) + `"` + "\n"},
	// Redis accepts slightly longer lines if their end came in the same read as the first byte too many.
	{"a line that is too long", strings.Repeat("a", 64<<10+1), "Protocol error: too big inline request"},
	{"a count that is too long", "*" + strings.Repeat("1", 64<<10), "Protocol error: too big mbulk count string"},
	{"a length that is too long", "*1\r\n$" + strings.Repeat("1", 64<<10), "Protocol error: too big bulk count string"},
}

func TestCommandsComeOutAsRedisReadsThem(t *testing.T) {
	effort.Alone(t)
	for _, s := range streams {
		t.Run(s.name, func(t *testing.T) {
			for _, size := range []int{1 << 20, 1, 7, 4096, 2, 3, 5}[:effort.Times(4, 7)] {
				if got := parse(new(resp.Parser), s.in, size); got != s.want {
					t.Errorf("in pieces of %d:\n got %.200s\nwant %.200s", size, got, s.want)
				}
			}
		})
	}
}

func TestCommandsMayBeCutAnywhere(t *testing.T) {
	stream := "*3\r\n$3\r\nSET\r\n$12\r\nkey\r\n*1\r\n$4\r\r\n$0\r\n\r\nSET 'a b' \"\\x41\"\r\n*1\r\n$4\r\nPING\r\n"
	want := parse(new(resp.Parser), stream, len(stream))
	for i := range stream {
		for j := i; j < len(stream); j++ {
			var p resp.Parser
			r := io.MultiReader(strings.NewReader(stream[:i]), strings.NewReader(stream[i:j]), strings.NewReader(stream[j:]))
			var got strings.Builder
			for {
				args, err := p.Next()
				if err != nil {
					t.Fatal(err)
				}
				if args != nil {
					fmt.Fprintf(&got, "%s\n", strings.ReplaceAll(fmt.Sprintf("%q", args)[1:], "]", ""))
					continue
				}
				if _, err := p.Fill(r); err == io.EOF {
					break
				}
			}
			if got.String() != want {
				t.Fatalf("cut at %d and %d: got\n%swant\n%s", i, j, got.String(), want)
			}
		}
	}
}

// A stream longer than the buffer: the rest of a command moves to its front, and the buffer grows for long arguments.
func TestLongStreams(t *testing.T) {
	effort.Alone(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))
	var stream, want strings.Builder
	for stream.Len() < 2<<20 {
		n := 1 + draw.IntN(5)
		fmt.Fprintf(&stream, "*%d\r\n", n)
		for i := range n {
			size := draw.IntN(30)
			if draw.IntN(50) == 0 {
				size = draw.IntN(50_000)
			}
			arg := strings.Repeat(string(rune('a'+i)), size)
			fmt.Fprintf(&stream, "$%d\r\n%s\r\n", size, arg)
			if i > 0 {
				want.WriteByte(' ')
			}
			fmt.Fprintf(&want, "%q", arg)
		}
		want.WriteByte('\n')
	}
	for _, size := range []int{1 << 30, 1000, 4096, 10_007} {
		if got := parse(new(resp.Parser), stream.String(), size); got != want.String() {
			t.Errorf("in pieces of %d: differs", size)
		}
	}
}

func TestBeforeAuthOnlySmallCommands(t *testing.T) {
	for in, want := range map[string]string{
		"*11\r\n":           "Protocol error: unauthenticated multibulk length",
		"*1\r\n$16385\r\n":  "Protocol error: unauthenticated bulk length",
		"*10\r\n$16384\r\n": "waits with 13",
	} {
		if got := parse(&resp.Parser{Unauthenticated: true}, in, 100); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// allocated returns the bytes allocated by one call of f, averaged over a few.
func allocated(f func()) int64 {
	const runs = 5
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc-before.TotalAlloc) / runs
}

func TestAPromisedLengthAllocatesNothing(t *testing.T) {
	var p resp.Parser
	got := allocated(func() {
		p = resp.Parser{}
		parse(&p, "*2147483647\r\n$536870912\r\nabc", 100)
	})
	if got > 16<<10 {
		t.Errorf("%d bytes for a promise of 512 MiB", got)
	}
}

// The buffer grows by doubling what has arrived, so all buffers together are about four times that, and the last one twice.
func TestMemoryFollowsWhatArrives(t *testing.T) {
	stream := "*1\r\n$500000000\r\n" + strings.Repeat("x", 1<<20)
	got := allocated(func() {
		var p resp.Parser
		for r := (&pieces{rest: []byte(stream), size: 1000}); len(r.rest) > 0; {
			p.Fill(r)
			if args, err := p.Next(); args != nil || err != nil {
				t.Fatal(args, err)
			}
		}
	}) - int64(len(stream)) // the copy that pieces reads
	if got > 4*int64(len(stream))+16<<10 {
		t.Errorf("%d bytes allocated for %d", got, len(stream))
	}
}

func TestParsingAllocatesNothing(t *testing.T) {
	batch := []byte(strings.Repeat("*3\r\n$3\r\nSET\r\n$11\r\nkey:0000001\r\n$3\r\nabc\r\n", 16) + "PING\r\n")
	var p resp.Parser
	r := bytes.NewReader(batch)
	commands := 0
	allocs := testing.AllocsPerRun(100, func() {
		r.Reset(batch)
		if _, err := p.Fill(r); err != nil {
			t.Fatal(err)
		}
		for {
			args, err := p.Next()
			if err != nil {
				t.Fatal(err)
			}
			if args == nil {
				break
			}
			commands++
		}
	})
	if allocs != 0 || commands != 17*101 {
		t.Errorf("%v allocations, %d commands", allocs, commands)
	}
}
