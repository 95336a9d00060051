package rdb

import (
	"bytes"
	"fmt"
	"math"
	"testing"
)

func TestStringsReadBackAsWritten(t *testing.T) {
	for _, s := range []string{
		"", "a", "0", "-1", "127", "128", "-128", "-129", "32767", "32768", "-32769", "2147483647", "2147483648", "-2147483648", "-2147483649",
		"007", "+5", "-0", "1.5", string(make([]byte, 63)), string(make([]byte, 64)), string(make([]byte, 16383)), string(make([]byte, 16384)),
	} {
		r, err := Open(Seal(AppendString(nil, []byte(s))))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.Bytes()); got != s || !r.Done() {
			t.Errorf("%.20q came back as %.20q", s, got)
		}
	}
}

func TestLengthsReadBackAsWritten(t *testing.T) {
	for _, n := range []uint64{0, 1, 63, 64, 16383, 16384, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64} {
		r := &Reader{b: AppendLen(nil, n)}
		if got := r.Number(); got != n || !r.Done() {
			t.Errorf("%d came back as %d", n, got)
		}
	}
}

func TestDamagedPayloadsAreRefused(t *testing.T) {
	good := Seal(AppendString([]byte{TypeString}, []byte("hello")))
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		if _, err := Open(bad); err != ErrChecksum {
			t.Errorf("byte %d: %v", i, err)
		}
		if _, err := Open(good[:i]); err != ErrChecksum {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

// Data behind a correct checksum is not trusted either.
func TestBadDataIsRefused(t *testing.T) {
	for _, b := range []string{
		"\x05abc",                              // five bytes promised, three there
		"\x80\xff\xff\xff\xffabc",              // four gigabytes
		"\xc0", "\xc1\x01", "\xc2\x01\x02\x03", // numbers cut short
		"\xc4", "\x82", // unknown encoding, unknown length
		"\xc3\x03\x05\x20\x00\x00", // LZF: a reference to before the beginning
		"\xc3\x02\x05\x05a",        // LZF: cut short
		"\xc3\x02\x40\x00a",        // LZF: less than promised
		"\xc3\x01\xbf\xff\xe0",     // LZF: more promised than can be
	} {
		r := &Reader{b: []byte(b)}
		if got := r.Bytes(); r.Err() != ErrFormat || r.Done() {
			t.Errorf("%q: %q, %v", b, got, r.Err())
		}
	}
	for _, b := range []string{
		"", "\x07\x00\x00\x00\x00\x00\xfe", "\x08\x00\x00\x00\x00\x00\xff",
		"\x08\x00\x00\x00\x01\x00\x81\xff",                 // a string cut short
		"\x09\x00\x00\x00\x01\x00\xc0\x01\xff",             // no length behind
		"\x0a\x00\x00\x00\x01\x00\xff\x01\xff\xff",         // something behind the end
		"\x0a\x00\x00\x00\x01\x00\xf5\x01\x02\xff",         // unknown type
		"\x0c\x00\x00\x00\x01\x00\xf0\xff\xff\xff\xff\xff", // a string of four gigabytes
	} {
		if got, err := unpack(b, (*Reader).Listpack); err != ErrFormat {
			t.Errorf("listpack %q: %q, %v", b, got, err)
		}
	}
	for _, b := range []string{"", "\x02\x00\x00\x00\x01\x00\x00\x00", "\x03\x00\x00\x00\x01\x00\x00\x00abc", "\x00\x00\x00\x00\x00\x00\x00\x00a"} {
		if got, err := unpack(b, (*Reader).Intset); err != ErrFormat {
			t.Errorf("intset %q: %q, %v", b, got, err)
		}
	}
}

// unpack reads the elements of b as in a payload, after its length.
func unpack(b string, read func(*Reader) [][]byte) ([][]byte, error) {
	r := &Reader{b: append(AppendLen(nil, uint64(len(b))), b...)}
	return read(r), r.Err()
}

func TestListpackElements(t *testing.T) {
	b := "\x00\x00\x00\x00\x00\x00" +
		"\x05\x01" + // 5
		"\x83abc\x04" + // a short string
		"\xdf\xff\x02" + "\xc1\x00\x02" + "\xd0\x00\x02" + // 13 bits: -1, 256, -4096
		"\xe0\x03xyz\x05" + // 12 bits of length
		"\xf0\x02\x00\x00\x00hi\x07" + // 32 bits of length
		"\xf1\xff\xff\x03" + "\xf2\x00\x00\x80\x04" + "\xf3\x00\x00\x00\x80\x05" + // 16, 24, 32 bits
		"\xf4\xff\xff\xff\xff\xff\xff\xff\x7f\x09" + "\xff"
	raw := []byte(b)
	raw[0] = byte(len(raw))
	got, err := unpack(string(raw), (*Reader).Listpack)
	want := "[5 abc -1 256 -4096 xyz hi -1 -8388608 -2147483648 9223372036854775807]"
	if fmt.Sprintf("%s", got) != want || err != nil {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

// The length after an element takes one byte for each seven bits, and one more where it would just fit, as in dumps of Redis 8.
func TestTheLengthBehindAnElement(t *testing.T) {
	for size, want := range map[int]uint64{
		1: 1, 127: 1, 128: 2, 16382: 2, 16383: 3, 16384: 3, 2097150: 3, 2097151: 4, 268435454: 4, 268435455: 5, 1 << 30: 5,
	} {
		if got := backLength(size); got != want {
			t.Errorf("behind %d bytes stand %d, want %d", size, got, want)
		}
	}
}
