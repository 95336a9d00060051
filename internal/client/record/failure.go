package record

import (
	"strings"
	"unicode/utf8"
)

// Failed says which load failed, by the ID of its lease, and why.
type Failed struct {
	ID   ID
	Text string

	// GivenUp is set, and Text empty, if the load did not fail: its process gave it up for reasons of its own, and others may load at once.
	GivenUp bool
}

// MaxText is how many bytes of the text are kept at most.
const MaxText = 200

// Is reports whether there was a failure at all.
func (f Failed) Is() bool { return f.ID != ID{} }

// bounded returns text as it is stored: valid, never empty, and cut at the end of a character.
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

// stored returns f's text as it is stored: empty if the load was given up.
func (f Failed) stored() string {
	if f.GivenUp {
		return ""
	}
	return bounded(f.Text)
}

func failedWith(id ID, text []byte) Failed {
	if len(text) == 0 {
		return Failed{ID: id, GivenUp: true}
	}
	return Failed{ID: id, Text: bounded(string(text))}
}

// AppendFailure appends a note that the load under a lease has failed.
func AppendFailure(dst []byte, f Failed) []byte {
	start := len(dst)
	dst = append(appendHead(dst, Failure, 0, f.ID), f.stored()...)
	Seal(dst[start:])
	return dst
}

// AppendLeaseAfter appends a lease that also carries the load that failed last.
func AppendLeaseAfter(dst []byte, token ID, f Failed) []byte {
	start := len(dst)
	dst = appendHead(dst, Lease, 0, token)
	dst = append(append(dst, f.ID[:]...), f.stored()...)
	Seal(dst[start:])
	return dst
}

// FailureOf returns the failure that a Failure or a Lease carries, from the results of [Parse].
func FailureOf(k Kind, h Header, body []byte) Failed {
	switch {
	case k == Failure:
		return failedWith(h.ID, body)
	case k == Lease && len(body) >= len(h.ID):
		return failedWith(ID(body[:len(h.ID)]), body[len(h.ID):])
	}
	return Failed{}
}
