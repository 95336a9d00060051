package httpcache

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"sync/atomic"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// selection is what a request contains in the fields that an answer varies by.
type selection struct {
	raw     string // as the client sent it; the rest follows from it
	variant string // in the form that the RFC compares
	name    string // of the variant; two variants get the same name only by chance, and then the response, which contains the variant in full, is not used
}

// selections remembers some, in a fixed space: bringing Accept-Encoding into its normal form takes longer than the rest
// of a local hit, and most clients send one of a few values.
type selections [256]atomic.Pointer[selection]

// maxRaw bounds how much of a request's fields is remembered.
const maxRaw = 512

var selectionSeed = maphash.MakeSeed()

// of returns what a request contains in these fields.
func (m *selections) of(fields []string, request *rfc9111.Selectors) *selection {
	var room [maxRaw]byte
	var alone [1]string
	raw := room[:0]
	for _, name := range fields {
		raw = append(append(raw, name...), 0) // names and values contain no zero byte
		lines, _ := request.Lines(name, &alone)
		for _, line := range lines {
			raw = append(append(raw, line...), 0)
		}
		raw = append(raw, 1)
	}
	if len(raw) > maxRaw {
		return newSelection("", fields, request)
	}
	at := &m[maphash.Bytes(selectionSeed, raw)%uint64(len(m))]
	if s := at.Load(); s != nil && s.raw == string(raw) {
		return s
	}
	s := newSelection(string(raw), fields, request)
	at.Store(s)
	return s
}

func newSelection(raw string, fields []string, request *rfc9111.Selectors) *selection {
	variant := rfc9111.Variant(fields, *request)
	return &selection{raw, variant, variantName(variant)}
}

const nameLen = 16 // bytes of a variant's name before hexadecimal encoding

func variantName(variant string) string {
	sum := sha256.Sum256([]byte(variant))
	return hex.EncodeToString(sum[:nameLen])
}
