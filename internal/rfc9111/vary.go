package rfc9111

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// maxVary bounds the fields that select a variant: more than anybody needs, few enough to compare for each request.
const maxVary = 16

// ParseVary returns the names of the request fields that choose between the variants of a response, in canonical form,
// sorted, each once. ok is false if no request can match (RFC 9111, section 4.1): a "*" anywhere, an invalid name,
// or more than maxVary fields.
func ParseVary(response http.Header) (fields []string, ok bool) {
	for name := range elements(response["Vary"]) {
		if name == "*" || !token(name) {
			return nil, false
		}
		if name = http.CanonicalHeaderKey(name); slices.Contains(fields, name) {
			continue
		}
		if fields = append(fields, name); len(fields) > maxVary {
			return nil, false
		}
	}
	slices.Sort(fields)
	return fields, true
}

// maxVariant is how long a selection may be before its hash takes its place.
const maxVariant = 128

// Variant returns what a request says in those fields, normalised so that different selections never coincide:
// an absent field differs from an empty one; several lines are one list; whitespace folds; of languages and codings
// the case does not count, nor the order of different weights (RFC 9111, section 4.1), nor that of codings of one weight. A long selection is replaced by its SHA-256.
func Variant(fields []string, request Selectors) string {
	if len(fields) == 0 {
		return ""
	}
	var b strings.Builder
	var room [1]string
	for _, name := range fields {
		lines, present := request.Lines(name, &room)
		if !present {
			b.WriteByte('-')
			continue
		}
		value := selecting(name, lines, request.AnyOrder)
		fmt.Fprintf(&b, "+%d:%s", len(value), value)
	}
	if b.Len() <= maxVariant {
		return b.String()
	}
	sum := sha256.Sum256([]byte(b.String()))
	return "#" + hex.EncodeToString(sum[:])
}

// maxPreferences is how long a list of languages or codings may be to be sorted: longer than any browser's.
const maxPreferences = 4 << 10

// selecting returns the normal form of a selecting field's value.
func selecting(name string, lines []string, anyOrder bool) string {
	if name == host {
		return strings.ToLower(lines[0])
	}
	if name == "Accept-Language" || name == "Accept-Encoding" {
		if len(strings.Join(lines, "")) <= maxPreferences {
			return preferences(lines, anyOrder || name == "Accept-Encoding")
		}
	}
	if len(lines) == 1 && !strings.ContainsAny(lines[0], " \t") { // nothing to fold
		return lines[0]
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte(',')
		}
		fold(&b, line)
	}
	return b.String()
}

// fold writes s without whitespace at its ends and around commas, and with every other run of whitespace as one space. Quoted
// strings stay as they are.
func fold(b *strings.Builder, s string) {
	space, first, quotes := false, true, true
	for i, n := 0, 1; i < len(s); i += n {
		n = 1
		switch s[i] {
		case ' ', '\t':
			space = true
			continue
		case ',':
			b.WriteByte(',')
			space, first = false, true
			continue
		case '"':
			if quotes {
				n = max(quoted(s[i:]), 1)
				quotes = n > 1 // if this one does not close, no later one does: see element
			}
		}
		if space && !first {
			b.WriteByte(' ')
		}
		b.WriteString(s[i : i+n])
		space, first = false, false
	}
}

// preferences writes a list of a client's preferences (RFC 9110, section 12.4.2), highest weight first. Letter case, order and
// the spelling of a weight do not count, except that without anyOrder the order among equal weights does.
func preferences(lines []string, anyOrder bool) string {
	type preference struct {
		name   string
		weight int // in thousandths; -1 if it is malformed
	}
	var list []preference
	for e := range elements(lines) {
		name, params, _ := strings.Cut(strings.ToLower(e), ";")
		w := 1000
		if params != "" {
			w = weight(params)
		}
		if w < 0 { // malformed: the whole element counts as a name
			name = e
		}
		list = append(list, preference{trim(name), w})
	}
	slices.SortStableFunc(list, func(a, b preference) int {
		if byWeight := cmp.Compare(b.weight, a.weight); byWeight != 0 || !anyOrder {
			return byWeight
		}
		return strings.Compare(a.name, b.name)
	})
	var b strings.Builder
	for i, p := range slices.Compact(list) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(p.name)
		if p.weight >= 0 && p.weight < 1000 {
			fmt.Fprintf(&b, ";q=%d", p.weight)
		}
	}
	return b.String()
}

// weight reads "q=0.5", in thousandths; -1 for anything else.
func weight(s string) int {
	value, ok := strings.CutPrefix(trim(s), "q=")
	whole, fraction, _ := strings.Cut(value, ".")
	if !ok || len(whole) != 1 || len(fraction) > 3 {
		return -1
	}
	w, ok := digits(whole+(fraction + "000")[:3], 9999)
	if !ok || w > 1000 {
		return -1
	}
	return int(w)
}
