package engine

import (
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// driver runs commands through Do as a connection would, and drops the replies.
type driver struct {
	e      *Engine
	s      *Session
	now    int64
	chunks [][]byte
	key    []byte
	at     int
}

func newDriver() *driver {
	e := New(Options{Seed: 1})
	return &driver{e: e, s: e.NewSession(SessionOptions{}), now: 1_800_000_000_000_000}
}

func (d *driver) run(args [][]byte) {
	d.e.Do(d.now, d.s, args)
	if d.s.Out.Len() > 16<<10 {
		d.drop()
	}
}

func (d *driver) drop() {
	d.chunks = d.s.Out.Take(d.chunks[:0])
	for _, chunk := range d.chunks {
		d.s.Out.Reuse(chunk)
	}
}

func command(words ...string) [][]byte {
	var args [][]byte
	for _, w := range words {
		args = append(args, []byte(w))
	}
	return args
}

// hot are commands on one of many keys, with the most allocations allowed for each.
var hot = []struct {
	name   string
	args   [][]byte // "k" is replaced by a key
	allocs float64
}{
	{"GET", command("GET", "k"), 0},
	{"SET", command("SET", "k", "12345678901234567890123456789012"), 0},
	{"SET EX", command("SET", "k", "12345678901234567890123456789012", "EX", "100"), 0},
	{"INCR", command("INCR", "n"), 0},
	{"EXPIRE", command("EXPIRE", "k", "100"), 0},
	{"TTL", command("TTL", "k"), 0},
	{"EXISTS", command("EXISTS", "k"), 0},
	{"PING", command("PING"), 0},
	{"GETRANGE", command("GETRANGE", "k", "0", "5"), 0},
}

const hotKeys = 100_000

// hotKey writes the name of a key into buf, as a connection's buffer would hold it: buf is in the processor's cache, the key itself is not.
func hotKey(buf []byte, i int) []byte {
	buf = append(buf[:0], "key:0000000"...)
	for at := len(buf) - 1; i > 0; at, i = at-1, i/10 {
		buf[at] = byte('0' + i%10)
	}
	return buf
}

func hotDriver() *driver {
	d := newDriver()
	for i := range hotKeys {
		d.run([][]byte{[]byte("SET"), hotKey(nil, i), []byte("12345678901234567890123456789012")})
	}
	return d
}

// next replaces the "k" of a hot command with the next key.
func (d *driver) next(args, pattern [][]byte) {
	if len(args) > 1 && string(pattern[1]) == "k" {
		d.at = (d.at + 7919) % hotKeys
		d.key = hotKey(d.key, d.at)
		args[1] = d.key
	}
}

func BenchmarkDo(b *testing.B) {
	for _, h := range hot {
		b.Run(h.name, func(b *testing.B) {
			d, args := hotDriver(), slices.Clone(h.args)
			b.ReportAllocs()
			for b.Loop() {
				d.next(args, h.args)
				d.run(args)
			}
		})
	}
	b.Run("SET new and DEL", func(b *testing.B) {
		d := newDriver()
		key := []byte("key:0000000")
		set, del := [][]byte{[]byte("SET"), key, []byte("12345678901234567890123456789012")}, [][]byte{[]byte("DEL"), key}
		b.ReportAllocs()
		for b.Loop() {
			d.run(set)
			d.run(del)
		}
	})
}

func TestHotCommandsDoNotAllocate(t *testing.T) {
	d := hotDriver()
	for _, h := range hot {
		args := slices.Clone(h.args)
		got := testing.AllocsPerRun(1000, func() {
			d.next(args, h.args)
			d.run(args)
			d.drop()
		})
		if got > h.allocs {
			t.Errorf("%s: %v allocations", h.name, got)
		}
	}
}

// bytesPerKey is the live heap for a key of 11 bytes with a value of 100 bytes and a deadline. Redis 8 takes 225.
const bytesPerKey = 270

func TestBytesPerKey(t *testing.T) {
	n := effort.Times(100_000, 1_000_000)
	before := heap()
	d := newDriver()
	value := make([]byte, 100)
	for i := range n {
		key := append([]byte("key:"), strconv.Itoa(1_000_000+i)...)
		ms := d.now/1000 + int64(i)*7919%10_000_000
		d.run([][]byte{[]byte("SET"), key, value, []byte("PXAT"), strconv.AppendInt(nil, ms, 10)})
	}
	d.drop()
	got := float64(heap()-before) / float64(n)
	t.Logf("%.1f bytes per key at %d keys", got, n)
	if got > bytesPerKey {
		t.Errorf("more than %d", bytesPerKey)
	}
	runtime.KeepAlive(d)
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A small engine that was used a little and dropped leaves next to nothing: tests start thousands of them.
func TestSmallEngineIsSmall(t *testing.T) {
	const engines = 1000
	before := heap()
	var keep []*driver
	for range engines {
		d := newDriver()
		d.run(command("SET", "k", "v", "EX", "100"))
		d.drop()
		keep = append(keep, d)
	}
	got := float64(heap()-before) / engines
	t.Logf("%.0f bytes per engine", got)
	if got > 32<<10 {
		t.Errorf("more than 32 KiB")
	}
	runtime.KeepAlive(keep)
}
