package rdb

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

// What stands between the keys of a file: one byte each, beyond the types of values.
const (
	opSlotInfo     = 244 // of a cluster: hints of sizes
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

// AppendHeader appends what a file begins with: its version, and pairs of a name and a value that tell of its origin.
func AppendHeader(b []byte, version int, aux ...string) []byte {
	b = fmt.Appendf(b, "REDIS%04d", version)
	for i := 0; i < len(aux); i += 2 {
		b = AppendString(AppendString(append(b, opAux), []byte(aux[i])), []byte(aux[i+1]))
	}
	return b
}

// AppendSelect says which database the keys that follow are of.
func AppendSelect(b []byte, db int) []byte { return AppendLen(append(b, opSelect), uint64(db)) }

// AppendSizes says how many keys the database has, and how many of them have a deadline: a hint for who makes room.
func AppendSizes(b []byte, keys, timed int) []byte {
	return AppendLen(AppendLen(append(b, opSizes), uint64(keys)), uint64(timed))
}

// AppendDeadline gives the key that follows its end, in unix milliseconds.
func AppendDeadline(b []byte, ms int64) []byte { return AppendMilliseconds(append(b, opDeadline), ms) }

// A Sum is the checksum of a file of which the pieces were given to Add. Its zero value is that of nothing.
type Sum uint64

// Add takes the next piece in.
func (s *Sum) Add(b []byte) { *s = Sum(update(uint64(*s), b)) }

// AppendEnd ends a file: sum is that of all before.
func AppendEnd(b []byte, sum Sum) []byte {
	b = append(b, opEnd)
	sum.Add(b[len(b)-1:])
	return binary.LittleEndian.AppendUint64(b, uint64(sum))
}

// version reads the first nine bytes of a file.
func version(head []byte) (int, error) {
	n, err := strconv.Atoi(string(head[5:]))
	if string(head[:5]) != "REDIS" || err != nil || n < 1 {
		return 0, fmt.Errorf("%w: it begins with %q, and an RDB file with REDIS and its version", ErrFormat, head)
	}
	if n > latest {
		return 0, fmt.Errorf("rdb: version %d of the form is newer than %d, the latest that can be read", n, latest)
	}
	return n, nil
}
