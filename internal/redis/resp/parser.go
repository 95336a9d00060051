// Package resp is Redis's wire format without its meaning: a [Parser] that extracts commands from the bytes as they arrive, a [Writer] that
// builds replies in RESP2 or RESP3, and a [Reader] for the other end, used by tests and tools. It knows neither what commands do nor where
// bytes come from.
//
//	var p resp.Parser
//	for {
//		args, err := p.Next() // aliases p's buffer until the next call
//		switch {
//		case err != nil:
//			w.Error("ERR " + err.Error()) // Redis's words; then close
//		case args != nil:
//			run(args)
//		default:
//			_, err = p.Fill(conn) // one read
//		}
//	}
package resp

import (
	"bytes"
	"cmp"
	"io"
)

// Redis's limits: server.h, PROTO_*.
const (
	maxLine   = 64 << 10  // bytes of an inline command, or of a line with a length
	maxCount  = 1<<31 - 1 // arguments of one command
	maxBulk   = 512 << 20 // bytes of one argument, unless MaxBulk is set
	anonCount = 10        // the same two before AUTH
	anonBulk  = 16 << 10
)

// Sizes of the read buffer. It starts small, since most connections are idle, doubles when a read fills it, and is released when it is empty
// and larger than keepRead.
const (
	minRead  = 4 << 10
	keepRead = 64 << 10
	keepArgs = 1 << 10
)

// A ProtocolError is a violation of the protocol, in Redis's words. Its connection cannot be used any further.
type ProtocolError string

func (e ProtocolError) Error() string { return "Protocol error: " + string(e) }

// A Parser extracts commands, multibulk or inline, from bytes that arrive in pieces of any size: how they were cut does not affect the
// result. Its memory is bounded by a small multiple of the bytes that arrived, whatever lengths were announced. The zero value is ready to
// use. A Parser is not safe for concurrent use.
type Parser struct {
	Unauthenticated bool // apply the limits for clients that have not sent AUTH yet
	MaxBulk         int  // longest argument, as proto-max-bulk-len; 0 means 512 MiB

	buf   []byte
	start int // the current command begins here
	pos   int // parsed up to here
	end   int // received up to here; start <= pos <= end

	missing int    // arguments of the current command still to come; 0 between commands
	bulk    int    // length of the argument at pos, if inBulk
	inBulk  bool   // the length line of the argument at pos was read
	spans   []span // complete arguments of the current command
	args    [][]byte
	err     error
}

// A span is the position of an argument, relative to the command's start, because the buffer may move while a command is incomplete.
type span struct{ from, to int }

// Next returns the next complete command, or nil when more bytes are needed, or a [ProtocolError], which is final. The
// arguments alias the parser's buffer and are valid until the next call of Next or Fill. Empty commands (a blank line,
// "*0", "*-10") are skipped, as Redis does.
func (p *Parser) Next() ([][]byte, error) {
	if p.err != nil {
		return nil, p.err
	}
	for p.missing == 0 {
		if cap(p.args) > keepArgs {
			p.args, p.spans = nil, nil
		}
		p.start, p.spans = p.pos, p.spans[:0]
		if p.pos == p.end {
			return nil, nil
		}
		if p.buf[p.pos] != '*' {
			args, more := p.inline()
			if len(args) > 0 || more || p.err != nil {
				return args, p.err
			}
			continue
		}
		n, ok := p.length("too big mbulk count string", '*')
		switch {
		case p.err != nil || !ok:
			return nil, p.err
		case n == badLength || n > maxCount:
			return nil, p.fail("invalid multibulk length")
		case n > anonCount && p.Unauthenticated:
			return nil, p.fail("unauthenticated multibulk length")
		case n > 0:
			p.missing = n
		}
	}
	for p.missing > 0 {
		if !p.inBulk {
			n, ok := p.length("too big bulk count string", '$')
			switch {
			case p.err != nil || !ok:
				return nil, p.err
			case n < 0 || n > cmp.Or(p.MaxBulk, maxBulk):
				return nil, p.fail("invalid bulk length")
			case n > anonBulk && p.Unauthenticated:
				return nil, p.fail("unauthenticated bulk length")
			}
			p.bulk, p.inBulk = n, true
		}
		if p.end-p.pos < p.bulk+2 {
			return nil, nil
		}
		// Redis does not look at the two bytes after an argument.
		p.spans = append(p.spans, span{p.pos - p.start, p.pos - p.start + p.bulk})
		p.pos += p.bulk + 2
		p.inBulk = false
		p.missing--
	}
	args, command := p.args[:0], p.buf[p.start:p.pos]
	for _, s := range p.spans {
		args = append(args, command[s.from:s.to:s.to])
	}
	p.args = args
	return args, nil
}

// Raw returns the bytes of the command that Next returned last. They are valid as long as the command is.
func (p *Parser) Raw() []byte { return p.buf[p.start:p.pos] }

// Fill makes room and does a single Read from r into the buffer.
func (p *Parser) Fill(r io.Reader) (int, error) {
	p.room()
	n, err := r.Read(p.buf[p.end:])
	p.end += n
	return n, err
}

// Buffered returns the number of bytes received but not yet returned as commands.
func (p *Parser) Buffered() int { return p.end - p.start }

// room leaves at least one free byte at the end of the buffer. The buffer grows by doubling what has arrived, and never past the end of the
// argument being read.
func (p *Parser) room() {
	if p.missing == 0 && p.pos == p.end {
		p.start, p.pos, p.end = 0, 0, 0
		if len(p.buf) > keepRead {
			p.buf = nil
		}
	}
	if p.end < len(p.buf) && (p.start == 0 || len(p.buf)-p.end >= minRead/4) {
		return
	}
	if p.start > 0 {
		copy(p.buf, p.buf[p.start:p.end])
		p.pos, p.end, p.start = p.pos-p.start, p.end-p.start, 0
		if len(p.buf)-p.end >= len(p.buf)/2 {
			return
		}
	}
	size := max(minRead, 2*len(p.buf))
	if need := p.pos + p.bulk + 2; p.inBulk && need > p.end && need < size {
		size = max(need, minRead)
	}
	if size > len(p.buf) {
		p.buf = append(make([]byte, 0, size), p.buf[:p.end]...)[:size]
	}
}

// badLength is what length reports for a malformed number. It is negative like any invalid count, but unlike others it is an error even for a
// command.
const badLength = -1 << 63

// length reads the line at pos, a sigil and a number, and steps over it. It reports false if the line is incomplete.
func (p *Parser) length(tooBig ProtocolError, sigil byte) (n int, ok bool) {
	b := p.buf[p.pos:p.end]
	// Nearly all lengths are below 100.
	if len(b) >= 4 && b[0] == sigil {
		if d := b[1] - '0'; d <= 9 {
			if b[2] == '\r' {
				p.pos += 4
				return int(d), true
			}
			if e := b[2] - '0'; e <= 9 && d > 0 && len(b) >= 5 && b[3] == '\r' {
				p.pos += 5
				return int(d)*10 + int(e), true
			}
		}
	}
	line, ok := p.line('\r', tooBig)
	if !ok || len(b) < len(line)+2 { // the byte after \r must have arrived, but Redis does not look at it
		return 0, false
	}
	if b[0] != sigil {
		p.fail(ProtocolError("expected '$', got '" + string(b[:1]) + "'"))
		return 0, false
	}
	p.pos += len(line) + 2
	return number(line[1:]), true
}

// line returns the bytes from pos up to the stop byte. Redis searches with strchr, for which a NUL hides the stop byte, so such a line is
// waited for until it is too long.
func (p *Parser) line(stop byte, tooBig ProtocolError) ([]byte, bool) {
	b := p.buf[p.pos:p.end]
	b = b[:min(len(b), maxLine+1)]
	if i := bytes.IndexByte(b, stop); i >= 0 && bytes.IndexByte(b[:i], 0) < 0 {
		return b[:i], true
	}
	if len(b) > maxLine {
		p.fail(tooBig)
	}
	return nil, false
}

// fail makes the error final and releases the buffer.
func (p *Parser) fail(e ProtocolError) error {
	*p = Parser{err: e}
	return e
}

// number reads a decimal like Redis's string2ll: no sign but '-', no leading zero, no space.
func number(b []byte) int {
	digits, negative := bytes.CutPrefix(b, []byte("-"))
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(b) > 1 {
		return badLength // no length of 19 digits is acceptable, so overflow needs no care
	}
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return badLength
		}
		n = n*10 + int(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

// inline reads a line of words. It returns no arguments for a blank line, and more if the line is incomplete.
func (p *Parser) inline() (args [][]byte, more bool) {
	line, ok := p.line('\n', "too big inline request")
	if !ok {
		return nil, p.err == nil
	}
	p.pos += len(line) + 1
	line = bytes.TrimSuffix(line, []byte{'\r'})
	args, ok = splitWords(p.args[:0], line)
	if !ok {
		p.fail("unbalanced quotes in request")
		return nil, false
	}
	p.args = args
	return args, false
}
