// Package rdb reads and writes Redis's serialised values: the payload of DUMP and RESTORE, which is a piece of an RDB file followed by a
// version and a checksum, and whole RDB files. It handles bytes, numbers and lists of bytes, and does not know what values are for.
package rdb

import (
	"encoding/binary"
	"errors"
	"hash/crc64"
	"math"
	"strconv"
)

// Version is the RDB version of Redis 8.0.
const Version = 12

// Types of values, the first byte of a payload. Those up to HashMetadata are written as well as read.
const (
	TypeString       = 0
	TypeList         = 1
	TypeSet          = 2
	TypeHash         = 4
	TypeZSet2        = 5  // scores in binary
	TypeHashMetadata = 24 // fields with deadlines

	TypeZSet           = 3 // scores as text
	TypeSetIntset      = 11
	TypeHashListpack   = 16
	TypeZSetListpack   = 17
	TypeListQuicklist2 = 18
	TypeSetListpack    = 20
	TypeHashListpackEx = 25 // triples of field, value, deadline
)

// ErrChecksum means that a payload is malformed, of a later version or damaged; ErrFormat, that its content cannot be read.
var (
	ErrChecksum = errors.New("rdb: wrong version or checksum")
	ErrFormat   = errors.New("rdb: bad data format")
)

// The checksum is Jones's CRC-64, which is inverted neither at the beginning nor at the end, unlike Go's.
var jones = crc64.MakeTable(0x95ac9329ac4bc9b5)

func checksum(b []byte) uint64 { return update(0, b) }

func update(sum uint64, b []byte) uint64 { return ^crc64.Update(^sum, jones, b) }

// Seal appends version and checksum to a payload.
func Seal(payload []byte) []byte {
	payload = binary.LittleEndian.AppendUint16(payload, Version)
	return binary.LittleEndian.AppendUint64(payload, checksum(payload))
}

// Open checks version and checksum of a payload and returns a Reader of what comes before them.
func Open(payload []byte) (*Reader, error) {
	n := len(payload) - 10
	if n < 0 || binary.LittleEndian.Uint16(payload[n:]) > Version || binary.LittleEndian.Uint64(payload[n+2:]) != checksum(payload[:n+2]) {
		return nil, ErrChecksum
	}
	return &Reader{b: payload[:n]}, nil
}

// AppendLen appends the number of things that follow.
func AppendLen(b []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(b, byte(n))
	case n < 1<<14:
		return append(b, 0x40|byte(n>>8), byte(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0x80), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(b, 0x81), n)
}

// Encodings of a string other than plain bytes: the low bits of a length's first byte if both its high bits are set.
const (
	encInt8  = 0
	encInt16 = 1
	encInt32 = 2
	encLZF   = 3
	encoded  = 0xc0 // the high bits
)

// AppendString appends a string. A 32-bit number in its shortest decimal form is stored as a number.
func AppendString(b, s []byte) []byte {
	if len(s) <= 11 {
		if n, err := strconv.ParseInt(string(s), 10, 32); err == nil && strconv.FormatInt(n, 10) == string(s) {
			switch {
			case n == int64(int8(n)):
				return append(b, encoded+encInt8, byte(n))
			case n == int64(int16(n)):
				return binary.LittleEndian.AppendUint16(append(b, encoded+encInt16), uint16(n))
			}
			return binary.LittleEndian.AppendUint32(append(b, encoded+encInt32), uint32(n))
		}
	}
	return append(AppendLen(b, uint64(len(s))), s...)
}

// AppendDouble appends a score.
func AppendDouble(b []byte, f float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

// AppendMilliseconds appends a time.
func AppendMilliseconds(b []byte, ms int64) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(ms))
}
