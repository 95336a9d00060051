package rdb

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// latest is the newest version of a file that can be read: that of Redis 8.6. Its newer types are not supported, and are refused by name.
const latest = 13

// File reads a file key by key, from any reader. It holds the current key in memory, and trusts no length.
//
//	f := rdb.NewFile(r)
//	for f.Next() {
//		f.Value(func(r *rdb.Reader) bool { ...; return r.Err() == nil })
//	}
//	return f.Err()
type File struct {
	// What Next found: the key, its database, its deadline in unix milliseconds (0: none), the type of its value.
	Key      []byte
	DB       int
	Deadline int64
	Type     byte

	Aux map[string]string // what the file has said about its origin so far

	src     io.Reader
	buf     []byte // buf[pos:] is not consumed yet
	pos     int
	eof     bool
	sum     Sum
	offset  int64 // of buf[pos] in the file
	version int
	begun   bool
	err     error
}

// NewFile returns a File that reads from r. It may read beyond the end of the file: see Rest.
func NewFile(r io.Reader) *File { return &File{src: r, Aux: make(map[string]string)} }

// Err returns the error with its position; nil after a file was read to its end.
func (f *File) Err() error {
	if f.err == io.EOF {
		return nil
	}
	return f.err
}

// Offset returns the position after what was read.
func (f *File) Offset() int64 { return f.offset }

func (f *File) fail(err error) bool {
	f.err = cmp.Or(f.err, fmt.Errorf("%w, at byte %d", err, f.offset))
	return false
}

// window is how much is read at a time.
const window = 256 << 10

// fill reads more bytes, and reports whether there were any.
func (f *File) fill() bool {
	if f.eof {
		return false
	}
	if f.pos > 0 {
		f.buf = f.buf[:copy(f.buf, f.buf[f.pos:])]
		f.pos = 0
	}
	if cap(f.buf)-len(f.buf) < window/2 {
		f.buf = append(make([]byte, 0, max(2*cap(f.buf), window)), f.buf...)
	}
	n, err := f.src.Read(f.buf[len(f.buf):cap(f.buf)])
	f.buf = f.buf[:len(f.buf)+n]
	if err != nil {
		f.eof = true
		if err != io.EOF {
			f.fail(err)
		}
	}
	return n > 0 || !f.eof
}

// part calls read with the bytes that come next, and again with more while they were too few. It reports false if read could not make sense
// of them.
func (f *File) part(read func(r *Reader) bool) bool {
	for f.err == nil {
		r := Reader{b: f.buf[f.pos:]}
		ok := read(&r)
		if ok && r.err == nil {
			n := len(f.buf) - f.pos - len(r.b)
			f.sum.Add(f.buf[f.pos : f.pos+n])
			f.pos += n
			f.offset += int64(n)
			return true
		}
		if !r.short {
			return f.fail(ErrFormat)
		}
		if !f.fill() {
			return f.fail(io.ErrUnexpectedEOF)
		}
	}
	return false
}

// Next advances to the next key. It reports false at the end or after an error, which Err returns. The value must be consumed with Value.
func (f *File) Next() bool {
	if !f.begun {
		f.begun = true
		if !f.header() {
			return false
		}
	}
	f.Deadline = 0
	for {
		var op byte
		if !f.part(func(r *Reader) bool { op = r.Byte(); return true }) {
			return false
		}
		switch op {
		case opSelect:
			f.part(func(r *Reader) bool { f.DB = int(min(r.Number(), 1<<30)); return true })
		case opSizes:
			f.part(func(r *Reader) bool { r.Number(); r.Number(); return true })
		case opAux:
			f.part(func(r *Reader) bool {
				name, value := string(r.Bytes()), string(r.Bytes())
				f.Aux[name] = value
				return true
			})
		case opDeadline:
			f.part(func(r *Reader) bool { f.Deadline = r.Milliseconds(); return true })
		case opDeadlineSec:
			f.part(func(r *Reader) bool { f.Deadline = signed(r.take(4)) * 1000; return true })
		case opIdle, opSlotInfo:
			f.part(func(r *Reader) bool {
				r.Number()
				if op == opSlotInfo {
					r.Number()
					r.Number()
				}
				return true
			})
		case opFrequency:
			f.part(func(r *Reader) bool { r.Byte(); return true })
		case opEnd:
			f.end()
			return false
		case opFunctions, opOldFunctions:
			return f.fail(errors.New("rdb: the file holds functions (FUNCTION LOAD), which are not supported"))
		case opModule:
			return f.fail(errors.New("rdb: the file holds data of a module, which is not supported"))
		default:
			f.Type = op
			return f.part(func(r *Reader) bool { f.Key = append(f.Key[:0], r.Bytes()...); return true })
		}
		if f.err != nil {
			return false
		}
	}
}

// Value calls read with the value of the key that Next found. It may call read several times, until all of the value is in memory; only the
// last call counts. If read reports false, the value is malformed, and that becomes the file's error.
func (f *File) Value(read func(r *Reader) bool) bool { return f.part(read) }

func (f *File) header() bool {
	return f.part(func(r *Reader) bool {
		head := r.take(9)
		if head == nil {
			return true
		}
		var err error
		if f.version, err = version(head); err != nil {
			f.fail(err)
		}
		return true
	}) && f.err == nil
}

// end reads the checksum.
func (f *File) end() {
	if f.version < 5 {
		f.err = io.EOF
		return
	}
	want := uint64(f.sum)
	f.part(func(r *Reader) bool {
		if b := r.take(8); b != nil {
			if got := binary.LittleEndian.Uint64(b); got != want && got != 0 { // 0: written with rdbchecksum no
				f.fail(fmt.Errorf("%w: the checksum is %x and should be %x", ErrChecksum, got, want))
			}
		}
		return true
	})
	if f.err == nil {
		f.err = io.EOF
	}
}

// Rest returns what was read from the source beyond the end of the file.
func (f *File) Rest() []byte { return f.buf[f.pos:] }
