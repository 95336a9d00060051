package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/mayflycache/mayfly/internal/redis/engine"
)

// scanner reads commands from a file, strictly: only arrays of strings, and comment lines. It holds one command in memory.
type scanner struct {
	src    io.Reader
	buf    []byte
	pos    int // buf[pos:] is not consumed yet
	eof    bool
	offset int64 // of buf[pos] in the file
	args   [][]byte
}

// errTorn means that the file ends within a command, errDamaged that what was read is not a command.
var (
	errTorn    = errors.New("the file ends within a command")
	errDamaged = errors.New("damaged")
)

const (
	scanWindow = 256 << 10
	maxArgs    = 1 << 30 // one effect may have more than a client's command
	maxArg     = 512 << 20
)

// next returns the next command, valid until the following call; io.EOF at the end. Afterwards offset is behind the command; after an error
// it is before it.
func (s *scanner) next() ([][]byte, error) {
	for {
		args, n, err := parseCommand(s.buf[s.pos:], s.args[:0])
		s.args = args
		switch {
		case err == errTorn && !s.eof:
			if err := s.fill(); err != nil {
				return nil, err
			}
		case err == errTorn && s.pos == len(s.buf):
			return nil, io.EOF
		case err != nil:
			return nil, err
		default:
			s.pos += n
			s.offset += int64(n)
			if len(args) > 0 {
				return args, nil
			}
		}
	}
}

// fill reads more bytes.
func (s *scanner) fill() error {
	if s.pos > 0 {
		s.buf = s.buf[:copy(s.buf, s.buf[s.pos:])]
		s.pos = 0
	}
	if cap(s.buf)-len(s.buf) < scanWindow/2 {
		s.buf = append(make([]byte, 0, max(2*cap(s.buf), scanWindow)), s.buf...)
	}
	n, err := s.src.Read(s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	if err == io.EOF {
		s.eof = true
		return nil
	}
	return err
}

// tail returns everything not yet consumed.
func (s *scanner) tail() ([]byte, error) {
	for !s.eof {
		if err := s.fill(); err != nil {
			return nil, err
		}
	}
	return s.buf[s.pos:], nil
}

// parseCommand reads one command at the beginning of b, and returns its length. A comment line is a command without arguments.
func parseCommand(b []byte, args [][]byte) (_ [][]byte, n int, err error) {
	if len(b) == 0 {
		return args, 0, errTorn
	}
	if b[0] == '#' {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			if len(b) > 4096 {
				return args, 0, fmt.Errorf("%w: a comment without an end", errDamaged)
			}
			return args, 0, errTorn
		}
		return args, end + 1, nil
	}
	count, at, err := parseNumber(b, '*', maxArgs)
	if err != nil {
		return args, 0, err
	}
	if count == 0 {
		return args, 0, fmt.Errorf("%w: a command without a name", errDamaged)
	}
	for range count {
		size, n, err := parseNumber(b[at:], '$', maxArg)
		if err != nil {
			return args, 0, err
		}
		at += n
		if len(b)-at < size+2 {
			return args, 0, errTorn
		}
		if b[at+size] != '\r' || b[at+size+1] != '\n' {
			return args, 0, fmt.Errorf("%w: an argument of %d bytes is followed by %q", errDamaged, size, b[at+size:at+size+2])
		}
		args = append(args, b[at:at+size:at+size])
		at += size + 2
	}
	return args, at, nil
}

// parseNumber reads a sigil, a number and a line break.
func parseNumber(b []byte, sigil byte, most int) (value, n int, err error) {
	if len(b) > 0 && b[0] != sigil {
		return 0, 0, fmt.Errorf("%w: found %q instead of %q", errDamaged, b[0], sigil)
	}
	end := bytes.IndexByte(b[:min(len(b), 16)], '\r')
	if end < 0 || end+1 == len(b) {
		digits := b[min(1, len(b)):min(16, len(b))]
		if end > 0 {
			digits = b[1:end]
		}
		for _, c := range digits {
			if c < '0' || c > '9' {
				return 0, 0, fmt.Errorf("%w: %q is not a number", errDamaged, digits)
			}
		}
		if len(b) >= 16 && end < 0 {
			return 0, 0, fmt.Errorf("%w: a number of more than 14 digits", errDamaged)
		}
		return 0, 0, errTorn
	}
	value, err = strconv.Atoi(string(b[1:end]))
	if err != nil || value < 0 || value > most || b[end+1] != '\n' || b[1] == '+' || b[1] == '-' {
		return 0, 0, fmt.Errorf("%w: the number %q is malformed or out of range", errDamaged, b[:end+2])
	}
	return value, end + 2, nil
}

// isTorn reports whether the rest of the newest file, from the first unreadable command on, is what a crash leaves: the beginning of a
// command, and zeros, which some file systems leave. If whole commands follow, the file is damaged in the middle, and those
// commands may have been acknowledged. A torn value may also contain what looks like commands: the search is for those of a journal, and is given up
// after many that did not lead to the end. There is no search if it is known that a write to there was not completed.
func isTorn(rest []byte, why error, begun bool) bool {
	data := bytes.TrimRight(rest, "\x00")
	if len(data) == 0 {
		return true
	}
	if len(data) < len(rest) {
		rest = data
		_, _, why = parseCommand(rest, nil)
	}
	if torn := errors.Is(why, errTorn); !torn || begun {
		return torn
	}
	for at, misled := 0, 0; misled < 1000; {
		next := bytes.Index(rest[at+1:], []byte("\n*"))
		if next < 0 {
			return true
		}
		at += 1 + next
		switch whole, ends := commandsTo(rest[at+1:]); {
		case ends && whole > 0:
			return false
		case whole > 0:
			misled++
		}
	}
	return true
}

// commandsTo returns how many whole commands b begins with, and whether it ends with them or within the next one.
func commandsTo(b []byte) (whole int, ends bool) {
	for {
		args, n, err := parseCommand(b, nil)
		if err != nil {
			return whole, errors.Is(err, errTorn)
		}
		if len(args) > 0 && !(engine.IsEffect(args) && engine.Knows(args)) {
			return whole, false
		}
		b = b[n:]
		whole++
	}
}
