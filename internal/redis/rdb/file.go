package rdb

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

// The bytes between the keys of a file, other than the types of values.
const (
	opSlotInfo     = 244 // of a cluster: size hints
	opFunctions    = 245
	opOldFunctions = 246
	opModule       = 247
	opIdle         = 248
	opFrequency    = 249
	opAux          = 250
	opSizes        = 251
	opDeadline     = 252
	opDeadlineSec  = 253
	opSelect       = 254
	opEnd          = 255
)

// Versions of a file: Redis 7.0 reads Plain; fields with deadlines need Timed, which Redis 7.4 is the first to read.
const (
	Plain = 10
	Timed = 12
)

// AppendHeader appends the beginning of a file: its version, and pairs of a name and a value that describe its origin.
func AppendHeader(b []byte, version int, aux ...string) []byte {
	b = fmt.Appendf(b, "REDIS%04d", version)
	for i := 0; i < len(aux); i += 2 {
		b = AppendString(AppendString(append(b, opAux), []byte(aux[i])), []byte(aux[i+1]))
	}
	return b
}

// AppendSelect appends the number of the database that the following keys belong to.
func AppendSelect(b []byte, db int) []byte { return AppendLen(append(b, opSelect), uint64(db)) }

// AppendSizes appends how many keys the database has, and how many of them have a deadline: a hint for readers that allocate.
func AppendSizes(b []byte, keys, timed int) []byte {
	return AppendLen(AppendLen(append(b, opSizes), uint64(keys)), uint64(timed))
}

// AppendDeadline appends the deadline of the following key, in unix milliseconds.
func AppendDeadline(b []byte, ms int64) []byte { return AppendMilliseconds(append(b, opDeadline), ms) }

// A Sum is the checksum of the pieces of a file given to Add. Its zero value is the checksum of nothing.
type Sum uint64

// Add adds the next piece.
func (s *Sum) Add(b []byte) { *s = Sum(update(uint64(*s), b)) }

// AppendEnd ends a file: sum is the checksum of everything before.
func AppendEnd(b []byte, sum Sum) []byte {
	b = append(b, opEnd)
	sum.Add(b[len(b)-1:])
	return binary.LittleEndian.AppendUint64(b, uint64(sum))
}

// version reads the first nine bytes of a file.
func version(head []byte) (int, error) {
	n, err := strconv.Atoi(string(head[5:]))
	if string(head[:5]) != "REDIS" || err != nil || n < 1 {
		return 0, fmt.Errorf("%w: the file begins with %q instead of REDIS and a version", ErrFormat, head)
	}
	if n > latest {
		return 0, fmt.Errorf("rdb: the file has version %d, and the newest that can be read is %d", n, latest)
	}
	return n, nil
}
