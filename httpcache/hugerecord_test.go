package httpcache_test

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// A record that claims to be made of nothing but empty texts costs its reader a small multiple of its bytes.
func TestARecordOfEmptyTexts(t *testing.T) {
	const size = 8 << 20
	rdb := redistest.Start(t).Client()
	opt := options(t, rdb)
	h := opened(t, opt).Handler(says("page", "Cache-Control: max-age=60"))
	for kind, claims := range map[byte][]byte{'r': binary.AppendUvarint(nil, size-64), 'v': nil} {
		rec := record.Begin(nil, record.Header{ID: record.NewID(), Format: record.FormatOf("httpcache/2"), Fresh: time.Minute})
		rec = binary.AppendVarint(append(rec, kind), time.Now().Add(time.Minute).UnixMilli())
		rec = append(rec, claims...)
		rec = append(rec, 0xc8, 0x01) // the status
		for range 8 {
			rec = append(rec, 0)
		}
		rec = binary.AppendUvarint(append(rec, 0), size/2) // far more than any header
		rec = append(rec, make([]byte, size)...)
		record.Seal(rec)
		expect.OK(t, rdb.Set(t.Context(), opt.Namespace.Prefix+"http://a.example/", rec, time.Minute).Err())
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if body, status := get(t, h, "http://a.example/"); body != "page" {
			t.Errorf("%c: got %q: %s", kind, body, status)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 8*size {
			t.Errorf("%c: a record of %d MB took %d MB", kind, size>>20, took>>20)
		}
	}
}
