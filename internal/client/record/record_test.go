package record_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

var header = record.Header{
	ID:     record.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
	Flags:  record.Compressed,
	Format: record.FormatOf("json"),
	Cost:   1500 * time.Microsecond,
	Fresh:  time.Hour,
	Window: 90 * time.Second,
	Ends:   1753000000123,
}

func value(h record.Header, body string) []byte {
	rec := append(record.Begin(nil, h), body...)
	record.Seal(rec)
	return rec
}

func TestAValueComesBack(t *testing.T) {
	for _, body := range []string{"", "x", `{"a":1}`, "\xc1mfy"} {
		k, h, got := record.Parse(value(header, body))
		if k != record.Value || string(got) != body || h != header {
			t.Errorf("%q came back as %v %q %+v", body, k, got, h)
		}
	}
}

// The bytes are a contract with every other version of this package that reads them: they change with the version.
func TestTheBytesAreThese(t *testing.T) {
	want := "\xc1mfy\x02\x01\x02\x00\x00\x00\x00\x33" + "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c" +
		"\x36\xa1\xa2\x43" + "\x00\x00\x05\xdc" + "\x00\x00\x00\x36\xee\x80" + "\x00\x00\x00\x01\x5f\x90" + "\x01\x98\x26\xf1\x3a\x7b" + "x"
	if d := diff.Of([]byte(want), value(header, "x")); d != "" {
		t.Error(d)
	}
	want = "\xc1mfy\x01\x02\x00\x00\x00\x00\x00\x18\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c"
	if d := diff.Of([]byte(want), record.AppendLease(nil, header.ID)); d != "" {
		t.Error(d)
	}
}

// What a Set knows only when it is sent is written into the record then, and into nothing that is no record of a value.
func TestTheEndIsWrittenLater(t *testing.T) {
	want := header
	rec := value(want, "body")
	want.Ends = 7
	record.SetEnds(rec, 7)
	if k, h, body := record.Parse(rec); k != record.Value || h != want || string(body) != "body" {
		t.Errorf("came back as %v %q %+v", k, body, h)
	}
	record.SetEnds(rec, 1<<48) // is not known, rather than another time
	if _, h, _ := record.Parse(rec); h != want {
		t.Errorf("came back as %+v", h)
	}
	for _, other := range [][]byte{[]byte(strings.Repeat("plain ", 20)), record.AppendLease(nil, header.ID), nil} {
		was := string(other)
		if record.SetEnds(other, 7); string(other) != was {
			t.Errorf("%q became %q", was, other)
		}
	}
}

func TestLeaseAndTombstone(t *testing.T) {
	for want, b := range map[record.Kind][]byte{
		record.Lease:     record.AppendLease([]byte("before"), header.ID)[6:],
		record.Tombstone: record.AppendTombstone([]byte("before"), header.ID)[6:],
	} {
		k, h, body := record.Parse(b)
		if k != want || h.ID != header.ID || body != nil || len(b) != record.HeadLen {
			t.Errorf("%v came back as %v %+v %q", want, k, h, body)
		}
	}
}

func TestASession(t *testing.T) {
	rec := append(record.BeginSession(nil, header.ID, header.Format), "x"...)
	record.Seal(rec)
	want := "\xc1mfy\x01\x04\x00\x00\x00\x00\x00\x23" + "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c" +
		"\x36\xa1\xa2\x43" + "\x00\x00\x00\x00\x00\x00" + "x"
	if d := diff.Of([]byte(want), rec); d != "" {
		t.Error(d)
	}
	copy(rec[record.EndAt:], "\x01\x02\x03\x04\x05\x06") // what a script does
	k, h, body := record.Parse(rec)
	if k != record.Session || h.ID != header.ID || h.Format != header.Format || string(body) != "x" {
		t.Errorf("came back as %v %+v %q", k, h, body)
	}
}

func TestBytesThatAreNoRecord(t *testing.T) {
	for _, b := range []string{"", "{}", `"text"`, "\xc1", "\xc1mf", "\x80\x04pickle", "c1mfy"} {
		k, h, body := record.Parse([]byte(b))
		if k != record.Plain || string(body) != b || h != (record.Header{}) {
			t.Errorf("%q came back as %v %q %+v", b, k, body, h)
		}
	}
}

func TestDamageAndTheFutureAreAlien(t *testing.T) {
	damaged := func(damage func(b []byte) []byte) []byte { return damage(value(header, "body")) }
	set := func(at int, to byte) []byte {
		return damaged(func(b []byte) []byte { b[at] = to; return b })
	}
	for name, b := range map[string][]byte{
		"the magic alone":   []byte("\xc1mfy"),
		"cut":               damaged(func(b []byte) []byte { return b[:len(b)-1] }),
		"cut in the header": damaged(func(b []byte) []byte { return b[:30] }),
		"without its end":   damaged(func(b []byte) []byte { b = b[:record.EndsFrom]; record.Seal(b); return b }),
		"appended to":       damaged(func(b []byte) []byte { return append(b, 'x') }),
		"version zero":      set(4, 0),
		"version 1, cut": func() []byte {
			b := damaged(func(b []byte) []byte { b[4] = 1; return b[:record.EndsFrom-1] })
			record.Seal(b)
			return b
		}(),
		"a later version":        set(4, 3),
		"a lease of version 2":   func() []byte { b := record.AppendLease(nil, header.ID); b[4] = 2; return b }(),
		"an unknown kind":        set(5, 9),
		"a session with flags":   set(5, 4),
		"kind zero":              set(5, 0),
		"an unknown flag":        set(6, 4),
		"the reserved byte set":  set(7, 1),
		"another length":         set(11, 7),
		"a lease with a body":    set(5, byte(record.Lease)),
		"a value without header": func() []byte { b := record.AppendLease(nil, header.ID); b[5] = 1; return b }(),
	} {
		if k, h, body := record.Parse(b); k != record.Alien || h != (record.Header{}) || body != nil {
			t.Errorf("%s: came back as %v %+v %q", name, k, h, body)
		}
	}
}

// first is a record as version 1 has it.
func first(h record.Header, body string) []byte {
	b := record.Begin(nil, h)[:record.EndsFrom]
	b = append(b, body...)
	b[4] = 1
	record.Seal(b)
	return b
}

// What the version before wrote is read, so that processes of both can run side by side. It tells no end, and has no room for one.
func TestVersion1IsRead(t *testing.T) {
	h := header
	h.Ends = 0
	for _, body := range []string{"", "v", "a longer body"} {
		b := first(header, body)
		record.SetEnds(b, 1<<40)
		if k, got, gotBody := record.Parse(b); k != record.Value || got != h || string(gotBody) != body {
			t.Errorf("%q came back as %v %+v %q", body, k, got, gotBody)
		}
	}
}

func TestNumbersAreClampedNotWrapped(t *testing.T) {
	h := record.Header{Cost: 1000 * time.Hour, Fresh: math.MaxInt64, Window: -time.Second}
	_, got, _ := record.Parse(value(h, ""))
	want := record.Header{Cost: math.MaxUint32 * time.Microsecond, Fresh: time.Duration(math.MaxInt64).Truncate(time.Millisecond)}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSealRefusesWhatRedisRefuses(t *testing.T) {
	rec := make([]byte, record.MaxLen+1)
	if record.Seal(rec) || !record.Seal(rec[:record.MaxLen]) {
		t.Error("the limit is not at MaxLen")
	}
}

func TestAFailureComesBack(t *testing.T) {
	long := strings.Repeat("x", record.MaxText-1) + "é"
	for text, want := range map[string]string{"down": "down", "": "no reason", "a\xffb": "a?b", long: long[:record.MaxText-1]} {
		f := record.Failed{ID: record.ID{7}, Text: text}
		for kind, b := range map[record.Kind][]byte{record.Failure: record.AppendFailure(nil, f), record.Lease: record.AppendLeaseAfter(nil, header.ID, f)} {
			k, h, body := record.Parse(b)
			if got := record.FailureOf(k, h, body); k != kind || got.ID != f.ID || got.Text != want || !got.Is() {
				t.Errorf("%q came back as %v %+v", text, k, got)
			}
			if kind == record.Lease && h.ID != header.ID {
				t.Errorf("the lease has the id %v", h.ID)
			}
		}
	}
	given := record.Failed{ID: record.ID{7}, GivenUp: true}
	for kind, b := range map[record.Kind][]byte{record.Failure: record.AppendFailure(nil, given), record.Lease: record.AppendLeaseAfter(nil, header.ID, given)} {
		k, h, body := record.Parse(b)
		if got := record.FailureOf(k, h, body); k != kind || got != given {
			t.Errorf("a load that was given up came back as %v %+v", k, got)
		}
	}
	if k, h, body := record.Parse(record.AppendLease(nil, header.ID)); record.FailureOf(k, h, body).Is() {
		t.Error("a lease that knows of no failure tells of one")
	}
}

func TestKindsHaveNames(t *testing.T) {
	for k, want := range []string{"plain", "value", "lease", "tombstone", "session", "failure", "alien", "Kind(7)"} {
		if got := record.Kind(k).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	rec, buf := value(header, "some body"), make([]byte, 0, 128)
	if n := testing.AllocsPerRun(1000, func() {
		_, h, body := record.Parse(rec)
		record.Seal(append(record.Begin(buf, h), body...))
		record.AppendLease(buf, h.ID)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever the bytes, Parse does not panic, and what it calls a record of ours is written again byte for byte.
func FuzzParse(f *testing.F) {
	f.Add(value(header, "body"))
	f.Add(value(record.Header{Flags: record.Negative}, ""))
	f.Add(first(header, "body"))
	f.Add(record.AppendLease(nil, header.ID))
	f.Add(record.AppendTombstone(nil, header.ID))
	f.Add(record.AppendFailure(nil, record.Failed{ID: header.ID, Text: "down"}))
	f.Add(record.AppendLeaseAfter(nil, header.ID, record.Failed{ID: record.ID{9}, Text: "down"}))
	session := append(record.BeginSession(nil, header.ID, 7), "body"...)
	record.Seal(session)
	f.Add(session)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, h, body := record.Parse(b)
		var again []byte
		switch k {
		case record.Plain:
			again = body
		case record.Value:
			if b[4] == 1 { // nobody writes it any more
				if h.Ends != 0 || !bytes.Equal(body, b[record.EndsFrom:]) {
					t.Errorf("%q is of version 1, and came back as %+v %q", b, h, body)
				}
				return
			}
			if h.Fresh == time.Duration(math.MaxInt64).Truncate(time.Millisecond) || h.Window == time.Duration(math.MaxInt64).Truncate(time.Millisecond) {
				return // beyond what a Duration holds: read as the longest
			}
			again = append(record.Begin(nil, h), body...)
			record.Seal(again)
		case record.Failure:
			f := record.FailureOf(k, h, body)
			if f.Text != string(body) {
				return // nobody writes such text
			}
			again = record.AppendFailure(nil, f)
		case record.Lease:
			if f := record.FailureOf(k, h, body); f != (record.Failed{}) {
				if f.Text != string(body[len(f.ID):]) {
					return
				}
				again = record.AppendLeaseAfter(nil, h.ID, f)
				break
			}
			again = record.AppendLease(nil, h.ID)
		case record.Tombstone:
			again = record.AppendTombstone(nil, h.ID)
		case record.Session:
			again = append(record.BeginSession(nil, h.ID, h.Format), body...)
			copy(again[record.EndAt:record.SessionLen], b[record.EndAt:]) // the end is for scripts
			record.Seal(again)
		case record.Alien:
			return
		}
		if !bytes.Equal(again, b) {
			t.Errorf("%q is %v %+v %q, which is written as %q", b, k, h, body, again)
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("id"), uint8(1), uint32(7), int64(5), int64(6), int64(7), uint32(8), []byte("body"))
	f.Fuzz(func(t *testing.T, id []byte, flags uint8, format uint32, cost, fresh, window int64, ends uint32, body []byte) {
		want := record.Header{
			Flags: record.Flags(flags) & (record.Negative | record.Compressed), Format: format,
			Cost:   time.Duration(uint32(cost)) * time.Microsecond,
			Fresh:  time.Duration(uint64(fresh)>>24) * time.Millisecond,
			Window: time.Duration(uint64(window)>>24) * time.Millisecond,
			Ends:   int64(ends) << 15,
		}
		copy(want.ID[:], id)
		k, got, gotBody := record.Parse(value(want, string(body)))
		if k != record.Value || got != want || !bytes.Equal(gotBody, body) {
			t.Errorf("%+v %q came back as %v %+v %q", want, body, k, got, gotBody)
		}
	})
}

// A session with a life of its own is read as one without, and one that is cut is not read.
func TestASessionWithALifeOfItsOwn(t *testing.T) {
	id := record.NewID()
	rec := append(record.BeginOwnLife(nil, id, 7, 30*24*time.Hour, time.Hour), "value"...)
	if len(rec) != record.OwnLifeLen+len("value") || !record.Seal(rec) {
		t.Fatalf("%d bytes", len(rec))
	}
	if kind, h, body := record.Parse(rec); kind != record.Session || h.ID != id || h.Format != 7 || string(body) != "value" {
		t.Errorf("read %v, %+v, %q", kind, h, body)
	}
	if kind, _, _ := record.Parse(rec[:len(rec)-1]); kind != record.Alien {
		t.Errorf("what was cut is %v", kind)
	}
	short := record.BeginOwnLife(nil, id, 7, 0, 0)[:record.SessionLen]
	record.Seal(short)
	if kind, _, _ := record.Parse(short); kind != record.Alien {
		t.Errorf("one that has no room for what it says it has is %v", kind)
	}
}
