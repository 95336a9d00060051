package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A Value is a reply in its original form, so that the replies of two servers can be compared.
type Value struct {
	Kind byte    // its first byte: one of + - : $ * _ # , ( = ! % ~ >
	Text string  // the content of + - $ ( = ! and the digits of ,
	Int  int64   // the content of : and, as 0 or 1, of #
	Null bool    // $-1, *-1 or _
	List []Value // the elements of * ~ >, and the alternating keys and values of %
}

// maxDepth bounds nesting: no reply of Redis comes near it, and a hostile reply must not exhaust the stack.
const maxDepth = 128

var errReply = errors.New("resp: malformed reply")

// A Reader reads replies in RESP2 and RESP3, including pushes. It trusts no length: memory grows with what arrives.
type Reader struct{ r *bufio.Reader }

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{bufio.NewReader(r)} }

// Read returns the next reply. Attributes are skipped.
func (r *Reader) Read() (Value, error) { return r.value(0) }

// Buffered returns the number of bytes received but not yet read.
func (r *Reader) Buffered() int { return r.r.Buffered() }

func (r *Reader) value(depth int) (Value, error) {
	line, err := r.line()
	if err != nil {
		return Value{}, err
	}
	if len(line) == 0 || depth > maxDepth {
		return Value{}, errReply
	}
	v, text := Value{Kind: line[0]}, line[1:]
	switch v.Kind {
	case '+', '-', '(', ',':
		v.Text = text
		return v, nil
	case '_':
		v.Null = true
		return v, nil
	case '#':
		if text == "t" {
			v.Int = 1
		} else if text != "f" {
			return v, errReply
		}
		return v, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v.Kind != ':' && n > maxCount {
		return v, fmt.Errorf("%w: %.40q", errReply, line)
	}
	switch v.Kind {
	case ':':
		v.Int = n
		return v, nil
	case '$', '=', '!':
		if n >= 0 {
			v.Text, err = r.bulk(n)
		}
	case '*', '~', '>':
		v.List, err = r.list(n, depth)
	case '%':
		v.List, err = r.list(2*n, depth)
	case '|':
		if _, err = r.list(2*n, depth); err == nil {
			v, err = r.value(depth + 1)
			return v, unexpected(err)
		}
	default:
		return v, fmt.Errorf("%w: %.40q", errReply, line)
	}
	v.Null = n < 0
	return v, err
}

func (r *Reader) line() (string, error) {
	line, err := r.r.ReadString('\n')
	if err != nil {
		if err == io.EOF && line != "" {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	if len(line) < 2 || line[len(line)-2] != '\r' {
		return "", errReply
	}
	return line[:len(line)-2], nil
}

func (r *Reader) bulk(n int64) (string, error) {
	var b strings.Builder
	if _, err := io.CopyN(&b, r.r, n+2); err != nil {
		return "", unexpected(err)
	}
	text, ok := strings.CutSuffix(b.String(), "\r\n")
	if !ok {
		return "", errReply
	}
	return text, nil
}

func (r *Reader) list(n int64, depth int) ([]Value, error) {
	if n < 0 {
		return nil, nil
	}
	list := make([]Value, 0, min(n, 64))
	for range n {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, unexpected(err)
		}
		list = append(list, v)
	}
	return list, nil
}

// unexpected turns the end of the stream within a reply into an error that says so.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
