package record

import (
	"strings"
	"unicode/utf8"
)

// Failed says which load failed, by its lease, and why.
type Failed struct {
	ID   ID
	Text string
}

// MaxText is how many bytes of the text are kept.
const MaxText = 200

// Is reports whether there was a failure at all.
func (f Failed) Is() bool { return f.ID != ID{} }

// bounded is text as it is stored: valid, never empty, and cut where a character ends.
func bounded(text string) string {
	if text == "" {
		return "no reason"
	}
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= MaxText {
		return text
	}
	cut := MaxText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// AppendFailure appends the note that the load under a lease failed.
func AppendFailure(dst []byte, f Failed) []byte {
	start := len(dst)
	dst = append(appendHead(dst, Failure, 0, f.ID), bounded(f.Text)...)
	Seal(dst[start:])
	return dst
}

// AppendLeaseAfter appends a lease that also tells of the load that failed last.
func AppendLeaseAfter(dst []byte, token ID, f Failed) []byte {
	start := len(dst)
	dst = appendHead(dst, Lease, 0, token)
	dst = append(append(dst, f.ID[:]...), bounded(f.Text)...)
	Seal(dst[start:])
	return dst
}

// FailureOf returns the failure that a Failure or a Lease tells of, from what [Parse] returned.
func FailureOf(k Kind, h Header, body []byte) Failed {
	switch {
	case k == Failure:
		return Failed{h.ID, bounded(string(body))}
	case k == Lease && len(body) > len(h.ID):
		return Failed{ID(body[:len(h.ID)]), bounded(string(body[len(h.ID):]))}
	}
	return Failed{}
}
