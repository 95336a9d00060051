package engine

import (
	"fmt"
	"strconv"
	"testing"
)

// BenchmarkLists works at the ends of a list of a million elements and inside one of a thousand.
func BenchmarkLists(b *testing.B) {
	for _, row := range []struct {
		name string
		n    int
		args [][]byte
	}{
		{"LPUSH", 1_000_000, command("LPUSH", "l", "xxx")},
		{"RPUSH", 1_000_000, command("RPUSH", "l", "xxx")},
		{"LMOVE", 1_000_000, command("LMOVE", "l", "l", "LEFT", "RIGHT")},
		{"LINDEX/middle", 1_000_000, command("LINDEX", "l", "500000")},
		{"LRANGE/100", 1_000_000, command("LRANGE", "l", "0", "99")},
		{"LPOS/end", 1000, command("LPOS", "l", "element:999")},
		{"LSET/middle", 1000, command("LSET", "l", "500", "another")},
		{"LREM/none", 1000, command("LREM", "l", "0", "none")},
	} {
		b.Run(row.name, func(b *testing.B) {
			d := newDriver()
			for i := range row.n {
				d.run([][]byte{[]byte("RPUSH"), []byte("l"), fmt.Append(nil, "element:", i)})
			}
			b.ReportAllocs()
			for b.Loop() {
				d.run(row.args)
			}
		})
	}
}

// BenchmarkHashes works on a small hash and on one of a million fields.
func BenchmarkHashes(b *testing.B) {
	for _, n := range []int{10, 100, 1_000_000} {
		var d *driver
		for _, row := range []struct {
			name  string
			args  [][]byte
			field int // which argument is a field
		}{
			{"HSET", command("HSET", "h", "", "other"), 2},
			{"HGET", command("HGET", "h", ""), 2},
			{"HINCRBY", command("HINCRBY", "n", "", "1"), 2},
			{"HPEXPIRE", command("HPEXPIRE", "h", "1000000", "FIELDS", "1", ""), 5},
			{"HGET/deadlines", command("HGET", "h", ""), 2},
		} {
			b.Run(row.name+"/"+strconv.Itoa(n), func(b *testing.B) {
				if d == nil {
					d = newDriver()
					for i := range n {
						d.run([][]byte{[]byte("HSET"), []byte("h"), fmt.Append(nil, "field:", i), []byte("value")})
					}
				}
				b.ReportAllocs()
				buf, i := make([]byte, 0, 32), 0
				for b.Loop() {
					i++
					row.args[row.field] = strconv.AppendInt(append(buf[:0], "field:"...), int64(i*104729%n), 10)
					d.run(row.args)
				}
			})
		}
	}
}
