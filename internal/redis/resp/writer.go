package resp

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// Sizes of the output. A Writer never copies more than a chunk to make room: a reply of any size is a list of chunks, which the owner writes
// out and drops one by one.
const (
	minChunk  = 512
	chunkSize = 64 << 10
	bigBulk   = 16 << 10 // a bulk of at least this length gets a chunk of its own size
	lineRoom  = 32       // enough for a sigil, a number and two line breaks
)

// A Writer builds replies. Types that only RESP3 has fall back to RESP2 as in Redis: a map becomes a flat array, a double a bulk string.
// Writing cannot fail and does no I/O. The zero value writes RESP2.
type Writer struct {
	Proto int // 3 for RESP3, anything else is RESP2

	buf  []byte
	full [][]byte // closed chunks, before buf
	held int      // bytes in full
}

// Simple writes a status such as +OK. It must not contain a line break.
func (w *Writer) Simple(s string) { line(w, '+', s) }

// Error writes an error; s begins with its code: "ERR syntax error". Line breaks become spaces, as in Redis.
func (w *Writer) Error(s string) {
	if strings.ContainsAny(s, "\r\n") {
		s = strings.NewReplacer("\r", " ", "\n", " ").Replace(strings.TrimRight(s, "\r\n"))
	}
	line(w, '-', s)
}

// Int writes an integer.
func (w *Writer) Int(n int64) { w.announce(':', n) }

// Bulk writes a binary string; b is copied.
func (w *Writer) Bulk(b []byte) { bulk(w, b) }

// BulkString writes a binary string.
func (w *Writer) BulkString(s string) { bulk(w, s) }

// BulkInt writes an integer as a binary string.
func (w *Writer) BulkInt(n int64) {
	var digits [20]byte
	w.Bulk(strconv.AppendInt(digits[:0], n, 10))
}

// Null writes the absence of a value.
func (w *Writer) Null() { w.either("_\r\n", "$-1\r\n") }

// NullArray writes the absence of an array: a blocking pop that timed out, an EXEC that was not run.
func (w *Writer) NullArray() { w.either("_\r\n", "*-1\r\n") }

// Array announces n replies.
func (w *Writer) Array(n int) { w.announce('*', int64(n)) }

// Map announces n pairs of a key and a value.
func (w *Writer) Map(n int) { w.announce(w.aggregate('%', n)) }

// Set announces n distinct replies.
func (w *Writer) Set(n int) { w.announce(w.aggregate('~', n)) }

// Push announces an unsolicited message of n replies. In RESP2 it is an array.
func (w *Writer) Push(n int) { w.announce(w.aggregate('>', n)) }

// Double writes a floating point number; see [AppendDouble].
func (w *Writer) Double(f float64) {
	var digits [40]byte
	text := AppendDouble(digits[:0], f)
	if w.Proto != 3 {
		w.Bulk(text)
		return
	}
	line(w, ',', text)
}

// Bool writes a truth value; in RESP2 it is 1 or 0.
func (w *Writer) Bool(b bool) {
	if b {
		w.either("#t\r\n", ":1\r\n")
	} else {
		w.either("#f\r\n", ":0\r\n")
	}
}

// BigNumber writes an integer of any size, given by its digits.
func (w *Writer) BigNumber(digits string) {
	if w.Proto == 3 {
		line(w, '(', digits)
	} else {
		w.BulkString(digits)
	}
}

// Verbatim writes text with its three-letter format, "txt" or "mkd".
func (w *Writer) Verbatim(format, s string) {
	if w.Proto != 3 {
		w.BulkString(s)
		return
	}
	w.room(len(s) + 2*lineRoom)
	w.buf = append(append(append(append(w.head('=', int64(len(s)+4)), format...), ':'), s...), '\r', '\n')
}

// Raw writes prebuilt frames, such as "+OK\r\n".
func (w *Writer) Raw(frames string) { raw(w, frames) }

// RawBytes is Raw; frames is copied.
func (w *Writer) RawBytes(frames []byte) { raw(w, frames) }

// either writes the frame for the Writer's protocol.
func (w *Writer) either(resp3, resp2 string) {
	if w.Proto == 3 {
		w.Raw(resp3)
	} else {
		w.Raw(resp2)
	}
}

// A Mark is a position in the output.
type Mark struct{ chunk, at int }

// Mark returns the position where the next reply will begin.
func (w *Writer) Mark() Mark { return Mark{len(w.full), len(w.buf)} }

// Rewind drops what was written after m.
func (w *Writer) Rewind(m Mark) {
	if m.chunk == len(w.full) {
		w.buf = w.buf[:m.at]
		return
	}
	w.buf = nil
	if m.at > 0 {
		w.buf = w.full[m.chunk][:m.at]
	}
	for _, chunk := range w.full[m.chunk:] {
		w.held -= len(chunk)
	}
	clear(w.full[m.chunk:])
	w.full = w.full[:m.chunk]
}

// ArrayAt inserts the header of an array before what was written since m, for handlers that learn the number only afterwards. Of several
// marks, the latest must be used first.
func (w *Writer) ArrayAt(m Mark, n int) {
	var scratch [24]byte
	head := appendHead(scratch[:0], '*', int64(n))
	switch {
	case m.chunk == len(w.full):
		w.buf = slices.Insert(w.buf, m.at, head...)
		return
	case m.at == 0: // the chunk may be a big one
		w.full = slices.Insert(w.full, m.chunk, slices.Clone(head))
	default:
		w.full[m.chunk] = slices.Insert(w.full[m.chunk], m.at, head...)
	}
	w.held += len(head)
}

// Len returns the number of bytes written and not yet taken.
func (w *Writer) Len() int { return w.held + len(w.buf) }

// Bytes returns what was written and not yet taken. It aliases the Writer's buffer if possible.
func (w *Writer) Bytes() []byte {
	if len(w.full) == 0 {
		return w.buf
	}
	return append(bytes.Join(w.full, nil), w.buf...)
}

// Take appends the output to chunks and leaves the Writer empty and without a buffer; see [Writer.Reuse].
func (w *Writer) Take(chunks [][]byte) [][]byte {
	chunks = append(chunks, w.full...)
	clear(w.full)
	w.full, w.held = w.full[:0], 0
	if len(w.buf) > 0 {
		chunks = append(chunks, w.buf)
		w.buf = nil
	}
	return chunks
}

// Reuse gives the Writer a buffer if it has none: a chunk that was taken and written out. A large one is left to the garbage collector.
func (w *Writer) Reuse(b []byte) {
	if cap(w.buf) == 0 && cap(b) <= chunkSize {
		w.buf = b[:0]
	}
}

// announce writes a line with a number.
func (w *Writer) announce(sigil byte, n int64) {
	w.room(lineRoom)
	w.buf = w.head(sigil, n)
}

// head appends such a line to the buffer, which has room for it.
func (w *Writer) head(sigil byte, n int64) []byte {
	if uint64(n) < 10 {
		return append(w.buf, sigil, byte('0'+n), '\r', '\n')
	}
	return appendHead(w.buf, sigil, n)
}

func appendHead(b []byte, sigil byte, n int64) []byte {
	return append(strconv.AppendInt(append(b, sigil), n, 10), '\r', '\n')
}

func raw[T []byte | string](w *Writer, frames T) {
	w.room(len(frames))
	w.buf = append(w.buf, frames...)
}

// line writes a sigil and a text.
func line[T []byte | string](w *Writer, sigil byte, s T) {
	w.room(len(s) + lineRoom)
	w.buf = append(append(append(w.buf, sigil), s...), '\r', '\n')
}

// aggregate returns the header that announces n elements, or pairs, in the Writer's protocol.
func (w *Writer) aggregate(sigil byte, n int) (byte, int64) {
	switch {
	case w.Proto == 3:
		return sigil, int64(n)
	case sigil == '%':
		return '*', 2 * int64(n)
	}
	return '*', int64(n)
}

// room makes room for n bytes: in the buffer, or in a new chunk if the buffer is full.
func (w *Writer) room(n int) {
	if cap(w.buf)-len(w.buf) < n {
		w.grow(n)
	}
}

func (w *Writer) grow(n int) {
	size := max(minChunk, 2*cap(w.buf), len(w.buf)+n)
	if len(w.buf) >= chunkSize/2 {
		w.close()
		size = max(chunkSize, n)
	}
	w.buf = append(make([]byte, 0, size), w.buf...)
}

func (w *Writer) close() {
	if len(w.buf) > 0 {
		w.full = append(w.full, w.buf)
		w.held += len(w.buf)
		w.buf = nil
	}
}

func bulk[T []byte | string](w *Writer, b T) {
	if len(b) < bigBulk {
		w.room(len(b) + lineRoom)
		w.buf = append(append(w.head('$', int64(len(b))), b...), '\r', '\n')
		return
	}
	w.close()
	chunk := appendHead(make([]byte, 0, len(b)+lineRoom), '$', int64(len(b)))
	chunk = append(append(chunk, b...), '\r', '\n')
	w.full = append(w.full, chunk)
	w.held += len(chunk)
}
