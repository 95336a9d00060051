package rdb_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mayflycache/mayfly/internal/redis/rdb"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// file is an RDB file of two databases.
func file() []byte {
	b := rdb.AppendHeader(nil, rdb.Plain, "redis-ver", "8.0.2")
	b = rdb.AppendSizes(rdb.AppendSelect(b, 0), 2, 1)
	b = rdb.AppendString(rdb.AppendString(append(rdb.AppendDeadline(b, 1_800_000_000_123), rdb.TypeString), []byte("k")), []byte("v"))
	b = rdb.AppendString(rdb.AppendString(append(b, rdb.TypeString), []byte("long")), []byte(strings.Repeat("x", 1000)))
	b = rdb.AppendSelect(b, 3)
	b = rdb.AppendString(rdb.AppendString(append(b, rdb.TypeString), []byte("n")), []byte("12345"))
	var sum rdb.Sum
	sum.Add(b)
	return rdb.AppendEnd(b, sum)
}

// read returns the keys of a file, and the error.
func read(from io.Reader) (keys []string, f *rdb.File) {
	f = rdb.NewFile(from)
	for f.Next() {
		var value string
		if f.Value(func(r *rdb.Reader) bool { value = string(r.Bytes()); return r.Err() == nil }) {
			keys = append(keys, string(f.Key)+"="+value[:min(len(value), 5)])
		}
	}
	return keys, f
}

func TestAFileIsReadInPiecesOfAnySize(t *testing.T) {
	for name, from := range map[string]io.Reader{
		"whole": bytes.NewReader(file()), "byte by byte": iotest.OneByteReader(bytes.NewReader(file())), "with its end": iotest.DataErrReader(bytes.NewReader(file())),
	} {
		keys, f := read(from)
		if got := strings.Join(keys, " "); got != "k=v long=xxxxx n=12345" || f.Err() != nil || f.DB != 3 || f.Aux["redis-ver"] != "8.0.2" || f.Offset() != int64(len(file())) {
			t.Errorf("%s: %s, %v, %+v", name, got, f.Err(), f)
		}
	}
}

// A file that was cut or changed anywhere is refused.
func TestADamagedFileIsRefused(t *testing.T) {
	effort.Alone(t)
	whole := file()
	for n := range whole {
		if _, f := read(bytes.NewReader(whole[:n])); !errors.Is(f.Err(), io.ErrUnexpectedEOF) {
			t.Errorf("the first %d bytes: %v", n, f.Err())
		}
		damaged := bytes.Clone(whole)
		damaged[n] ^= 0x11
		if _, f := read(bytes.NewReader(damaged)); f.Err() == nil {
			t.Errorf("byte %d was changed", n)
		}
	}
	if _, f := read(strings.NewReader("REDIS0099")); f.Err() == nil || !strings.Contains(f.Err().Error(), "version 99") {
		t.Errorf("version 99: %v", f.Err())
	}
}

func FuzzFile(f *testing.F) {
	f.Add(file())
	f.Add([]byte("REDIS0012\xfa\x03abc\x80\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys, file := read(bytes.NewReader(b))
		again, other := read(iotest.OneByteReader(bytes.NewReader(b)))
		if strings.Join(keys, " ") != strings.Join(again, " ") || (file.Err() == nil) != (other.Err() == nil) {
			t.Errorf("whole: %q, %v; byte by byte: %q, %v", keys, file.Err(), again, other.Err())
		}
	})
}
