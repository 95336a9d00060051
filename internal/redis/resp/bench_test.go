package resp_test

import (
	"bytes"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

func BenchmarkParser(b *testing.B) {
	for _, c := range []struct{ name, command string }{
		{"SET", "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000001\r\n$3\r\nxxx\r\n"},
		{"GET", "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n"},
		{"inline", "PING\r\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			batch := bytes.Repeat([]byte(c.command), 16)
			var p resp.Parser
			r := bytes.NewReader(batch)
			for n := 0; b.Loop(); n-- {
				if n == 0 {
					r.Reset(batch)
					p.Fill(r)
					n = 16
				}
				if args, err := p.Next(); args == nil || err != nil {
					b.Fatal(args, err)
				}
			}
		})
	}
}

func BenchmarkWriter(b *testing.B) {
	value := []byte("a value of some length")
	for _, c := range []struct {
		name  string
		write func(*resp.Writer)
	}{
		{"Simple", func(w *resp.Writer) { w.Simple("OK") }},
		{"Int", func(w *resp.Writer) { w.Int(12345) }},
		{"Bulk", func(w *resp.Writer) { w.Bulk(value) }},
		{"Double", func(w *resp.Writer) { w.Double(1.25) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var w resp.Writer
			var chunks [][]byte
			for n := 0; b.Loop(); n++ {
				c.write(&w)
				if n == 100 {
					n = 0
					chunks = w.Take(chunks[:0])
					w.Reuse(chunks[0])
				}
			}
		})
	}
}
