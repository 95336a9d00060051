package engine

import (
	"strconv"
	"testing"
)

// collectionCommands are hot commands on a small and on a large set or sorted set, with the most allocations allowed for each.
var collectionCommands = []struct {
	name   string
	args   [][]byte // "m" is replaced by an existing member, "new" by a new one
	allocs float64
}{
	{"SADD", command("SADD", "s", "new"), 1},
	{"SADD again", command("SADD", "s", "m"), 0},
	{"SISMEMBER", command("SISMEMBER", "s", "m"), 0},
	{"SCARD", command("SCARD", "s"), 0},
	{"ZADD", command("ZADD", "z", "3.5", "new"), 2},
	{"ZADD again", command("ZADD", "z", "1", "m"), 0},
	{"ZINCRBY", command("ZINCRBY", "z", "1.5", "m"), 1},
	{"ZSCORE", command("ZSCORE", "z", "m"), 0},
	{"ZRANK", command("ZRANK", "z", "m"), 0},
	{"ZCOUNT", command("ZCOUNT", "z", "10", "(500"), 2},
	{"ZRANGE", command("ZRANGE", "z", "10", "19"), 2},
	{"ZRANGEBYSCORE", command("ZRANGEBYSCORE", "z", "(10", "+inf", "LIMIT", "0", "10"), 4},
}

// collections returns a driver whose set s and sorted set z have n members, and a function that prepares command i of a row.
func collections(n int) (d *driver, prepare func(args [][]byte, i int)) {
	d = newDriver()
	member := func(i int) []byte { return strconv.AppendInt([]byte("member:"), int64(i), 10) }
	for i := range n {
		d.run([][]byte{[]byte("SADD"), []byte("s"), member(i)})
		d.run([][]byte{[]byte("ZADD"), []byte("z"), []byte(strconv.Itoa(i * 7919 % n)), member(i)})
	}
	buf := make([]byte, 0, 64)
	return d, func(args [][]byte, i int) {
		for k, a := range args {
			switch string(a) {
			case "m":
				args[k] = strconv.AppendInt(append(buf[:0], "member:"...), int64(i*104729%n), 10)
			case "new":
				args[k] = strconv.AppendInt(append(buf[:0], "new:"...), int64(i), 10)
			}
		}
	}
}

func BenchmarkCollections(b *testing.B) {
	for _, n := range []int{100, 1_000_000} {
		d, prepare := collections(n)
		for _, h := range collectionCommands {
			b.Run(h.name+"/"+strconv.Itoa(n), func(b *testing.B) {
				b.ReportAllocs()
				args := make([][]byte, len(h.args))
				i := 0
				for b.Loop() {
					copy(args, h.args)
					prepare(args, i)
					d.run(args)
					i++
				}
			})
		}
	}
}

func TestCollectionsCostFewAllocations(t *testing.T) {
	d, prepare := collections(10_000)
	for _, h := range collectionCommands {
		args := make([][]byte, len(h.args))
		i := 0
		got := testing.AllocsPerRun(2000, func() {
			copy(args, h.args)
			prepare(args, i)
			d.run(args)
			i++
		})
		if got > h.allocs {
			t.Errorf("%s costs %v allocations, want at most %v", h.name, got, h.allocs)
		}
	}
}
