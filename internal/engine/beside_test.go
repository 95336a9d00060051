package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/resp"
)

// beside drives one family's random commands at an engine and at a real Redis and compares every reply and every keyspace event. The clock
// runs; nothing is reaped, so that dead keys and fields are met by commands on both sides.
type beside struct {
	engine   *Engine
	sessions map[int]*Session // by protocol; 0 subscribes
	redis    map[int]*wire
}

type wire struct {
	net.Conn
	r   *resp.Reader
	buf []byte
}

func (w *wire) do(args []string) (resp.Value, error) {
	w.buf = fmt.Appendf(w.buf[:0], "*%d\r\n", len(args))
	for _, a := range args {
		w.buf = fmt.Appendf(w.buf, "$%d\r\n%s\r\n", len(a), a)
	}
	w.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := w.Write(w.buf); err != nil {
		return resp.Value{}, err
	}
	return w.r.Read()
}

const subscriber = 0

// besideCommands is how many commands a comparison plays.
func besideCommands() int {
	if testing.Short() {
		return 1000
	}
	return 5000
}

// newBeside starts both sides. Low limits let small values take both forms.
func newBeside(t *testing.T, low bool) *beside {
	addr := realServer(t)
	b := &beside{engine: New(Options{Seed: 1}), sessions: map[int]*Session{}, redis: map[int]*wire{}}
	for _, proto := range []int{2, 3, subscriber} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		b.redis[proto] = &wire{Conn: conn, r: resp.NewReader(conn)}
		b.sessions[proto] = b.engine.NewSession(SessionOptions{Now: time.Now().UnixMicro()})
	}
	b.both(t, 3, "HELLO", "3")
	b.both(t, 2, "DEBUG", "SET-ACTIVE-EXPIRE", "0")
	b.redis[2].do([]string{"CONFIG", "SET", "notify-keyspace-events", "AEn"})
	b.engine.settings.notify = notifyKeyevent | notifyAll | notifyNew
	if low {
		b.redis[2].do([]string{"CONFIG", "SET", "hash-max-listpack-entries", "4", "list-max-listpack-size", "4"})
		b.engine.limits.HashMaxListpackEntries = 4
		b.engine.limits.ListMaxListpackSize = 4
	}
	b.both(t, subscriber, "PSUBSCRIBE", "__keyevent@*", "end")
	b.redis[subscriber].r.Read()
	return b
}

// both runs a command on both sides and returns the replies.
func (b *beside) both(t *testing.T, proto int, args ...string) (got, want resp.Value) {
	t.Helper()
	want, err := b.redis[proto].do(args)
	if err != nil {
		t.Fatalf("Redis: %q: %v", args, err)
	}
	raw := make([][]byte, len(args))
	for i, a := range args {
		raw[i] = []byte(a)
	}
	s := b.sessions[proto]
	b.engine.Do(time.Now().UnixMicro(), s, raw)
	if s.Waiting() {
		at, ok := b.engine.NextWake()
		if !ok {
			t.Fatalf("engine: %q waits for ever", args)
		}
		b.engine.Tick(at)
	}
	for _, a := range raw { // nothing of the arguments may be kept
		for i := range a {
			a[i] = '!'
		}
	}
	got, err = resp.NewReader(bytes.NewReader(s.Out.Bytes())).Read()
	if err != nil {
		t.Fatalf("engine: %q: %v in %q", args, err, s.Out.Bytes())
	}
	s.Out.Take(nil)
	return got, want
}

// events returns the keyspace events since the last call, of both sides.
func (b *beside) events(t *testing.T) (got, want []string) {
	w := b.redis[2]
	w.do([]string{"PUBLISH", "end", "end"})
	b.redis[subscriber].SetDeadline(time.Now().Add(10 * time.Second))
	name := func(v resp.Value) string {
		if len(v.List) < 4 {
			return notation(v)
		}
		_, event, _ := strings.Cut(v.List[2].Text, "__:")
		return event + " " + v.List[3].Text
	}
	for {
		v, err := b.redis[subscriber].r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if len(v.List) == 4 && v.List[2].Text == "end" {
			break
		}
		want = append(want, name(v))
	}
	s := b.sessions[subscriber]
	r := resp.NewReader(bytes.NewReader(s.Out.Bytes()))
	for v, err := r.Read(); err == nil; v, err = r.Read() {
		got = append(got, name(v))
	}
	s.Out.Take(nil)
	return got, want
}

// play compares n draws.
func (b *beside) play(t *testing.T, seed uint64, n int, draw func(*rand.Rand) []string) {
	r := rand.New(rand.NewPCG(seed, 0))
	b.both(t, 2, "FLUSHALL")
	b.events(t)
	b.sessions[subscriber].Out.Take(nil)
	used := map[string]int{}
	var trail []string
	for range n {
		args, proto := draw(r), 2+r.IntN(2)
		used[strings.ToLower(args[0])]++
		got, want := b.both(t, proto, args...)
		gotEvents, wantEvents := b.events(t)
		trail = append(trail, fmt.Sprintf("%.60q", args))
		loose := len(args) > 1 && b.table(args[1])
		if !sameReply(args, got, want, loose) || !slices.Equal(gotEvents, wantEvents) {
			t.Fatalf("seed %d, RESP%d, after\n%s\n got %.300s %.300v\nwant %.300s %.300v", seed, proto, strings.Join(trail[max(0, len(trail)-25):], "\n"),
				notation(got), gotEvents, notation(want), wantEvents)
		}
		if slices.Contains(args, "1") {
			<-time.After(3 * time.Millisecond) // a deadline of 1 ms is over
		}
		b.compareEncodings(t, args, trail)
	}
	t.Logf("seed %d: %d commands: %v", seed, n, used)
}

// table reports whether key holds something whose order is not defined.
func (b *beside) table(key string) bool {
	o := b.engine.dbs[0].find([]byte(key))
	return o != nil && o.coll != nil && o.encoding() == "hashtable"
}

// compareEncodings compares the forms of whatever the arguments name.
func (b *beside) compareEncodings(t *testing.T, args, trail []string) {
	for _, key := range args[1:] {
		if b.engine.dbs[0].find([]byte(key)) == nil {
			continue
		}
		got, want := b.both(t, 2, "OBJECT", "ENCODING", key)
		if notation(got) != notation(want) {
			t.Fatalf("after\n%s\n%s is %s, not %s", strings.Join(trail[max(0, len(trail)-25):], "\n"), key, notation(got), notation(want))
		}
	}
}

// drift is how far the two clocks may be apart, in milliseconds.
const drift = 500

// sameReply compares two replies, with tolerance where two servers may differ: chance, order, the time of day.
func sameReply(args []string, got, want resp.Value, loose bool) bool {
	if notation(got) == notation(want) {
		return true
	}
	switch name := strings.ToUpper(args[0]); name {
	case "HRANDFIELD":
		return replyShape(got) == replyShape(want)
	case "HGETALL", "HKEYS", "HVALS", "HSCAN":
		return loose && slices.Equal(flat(got), flat(want))
	case "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME":
		a, b := flat(got), flat(want)
		return len(a) == len(b) && slices.EqualFunc(flatOrdered(got), flatOrdered(want), near)
	}
	return false
}

func near(a, b string) bool {
	x, errX := strconv.ParseInt(strings.TrimPrefix(a, ":"), 10, 64)
	y, errY := strconv.ParseInt(strings.TrimPrefix(b, ":"), 10, 64)
	return a == b || errX == nil && errY == nil && x > 0 && y > 0 && max(x-y, y-x) <= drift
}

// flat returns the leaves of a reply, sorted.
func flat(v resp.Value) []string {
	leaves := flatOrdered(v)
	slices.Sort(leaves)
	return leaves
}

func flatOrdered(v resp.Value) (leaves []string) {
	if len(v.List) == 0 {
		return []string{notation(v)}
	}
	for _, e := range v.List {
		leaves = append(leaves, flatOrdered(e)...)
	}
	return leaves
}

// replyShape is a reply without the texts in it.
func replyShape(v resp.Value) string {
	parts := []string{string(v.Kind)}
	if v.Null {
		parts[0] += "null"
	}
	for _, e := range v.List {
		parts = append(parts, replyShape(e))
	}
	return "(" + strings.Join(parts, " ") + ")"
}
