package resp_test

import (
	"bytes"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

// However a stream is cut into pieces, the parser returns the same commands and the same error.
func FuzzParser(f *testing.F) {
	for _, s := range streams {
		if len(s.in) < 1000 {
			f.Add(s.in, byte(3))
		}
	}
	f.Fuzz(func(t *testing.T, stream string, size byte) {
		whole := parse(new(resp.Parser), stream, 1<<20)
		if pieces := parse(new(resp.Parser), stream, 1+int(size)); pieces != whole {
			t.Errorf("in pieces of %d:\n%s\nwhole:\n%s", 1+size, pieces, whole)
		}
		if bytewise := parse(new(resp.Parser), stream, 1); bytewise != whole {
			t.Errorf("byte by byte:\n%s\nwhole:\n%s", bytewise, whole)
		}
	})
}

// A reply that is read and written again reads the same; nothing panics.
func FuzzReader(f *testing.F) {
	for _, frame := range frames {
		f.Add([]byte(frame.resp2))
		f.Add([]byte(frame.resp3))
	}
	f.Add([]byte("*2\r\n%1\r\n+a\r\n*-1\r\n>1\r\n=6\r\ntxt:hi\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := resp.NewReader(bytes.NewReader(stream))
		for {
			v, err := r.Read()
			if err != nil {
				return
			}
			again, err := resp.NewReader(bytes.NewReader(encode(nil, v))).Read()
			if d := diff.Of(v, again); d != "" || err != nil {
				t.Fatalf("%v: %s", err, d)
			}
		}
	})
}
