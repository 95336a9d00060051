package rfc9111

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dunglas/httpsfv"
)

// Search says which parameters of a query distinguish the answers of a path, as given by the field No-Vary-Search
// (draft-ietf-httpbis-no-vary-search). The zero Search is its default: any difference counts.
type Search struct {
	anyOrder bool     // of parameters with different names
	only     bool     // names lists the parameters that count, instead of those that do not
	names    []string // decoded, sorted, each once
}

// Bounds far above what servers need; a longer field counts as malformed.
const (
	maxSearch      = 4 << 10
	maxSearchNames = 64
)

// ParseSearch returns the Search of a response. It is the zero Search if the field is absent or has anything that the draft does not
// define: fewer requests then share an answer, and none gets a wrong one.
func ParseSearch(response http.Header) Search {
	lines := Canonical(response)["No-Vary-Search"]
	if len(lines) == 0 || len(strings.Join(lines, ", ")) > maxSearch {
		return Search{}
	}
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return Search{}
	}
	var s Search
	ok := true
	if m, given := d.Get("key-order"); given {
		s.anyOrder, ok = boolean(m)
	}
	if m, given := d.Get("params"); given && ok {
		if s.only, ok = boolean(m); !ok {
			s.names, ok = keys(m)
		}
	}
	if m, given := d.Get("except"); given && ok {
		if ok = s.only; ok {
			s.names, ok = keys(m)
		}
	}
	if !ok || len(s.names) > maxSearchNames {
		return Search{}
	}
	return s
}

func boolean(m httpsfv.Member) (b, ok bool) {
	if item, is := m.(httpsfv.Item); is {
		b, ok = item.Value.(bool)
	}
	return b, ok
}

// keys reads an inner list of names, which are encoded as in a query.
func keys(m httpsfv.Member) (names []string, ok bool) {
	list, ok := m.(httpsfv.InnerList)
	if !ok {
		return nil, false
	}
	for _, item := range list.Items {
		name, ok := item.Value.(string)
		if !ok {
			return nil, false
		}
		names = append(names, formDecode(name))
	}
	slices.Sort(names)
	return slices.Compact(names), true
}

// Counts reports whether every difference counts, which is the default.
func (s Search) Counts() bool { return !s.anyOrder && !s.only && len(s.names) == 0 }

// Equal reports whether two say the same.
func (s Search) Equal(o Search) bool {
	return s.anyOrder == o.anyOrder && s.only == o.only && slices.Equal(s.names, o.names)
}

// Texts returns what [SearchOf] reads as s: nothing for the zero Search.
func (s Search) Texts() []string {
	if s.Counts() {
		return nil
	}
	kind := "-"
	if s.only {
		kind = "+"
	}
	if s.anyOrder {
		kind += "o"
	}
	return append([]string{kind}, s.names...)
}

// SearchOf reads what Texts has returned; ok is false for anything else.
func SearchOf(texts []string) (s Search, ok bool) {
	if len(texts) == 0 {
		return s, true
	}
	kind, anyOrder := strings.CutSuffix(texts[0], "o")
	s = Search{anyOrder, kind == "+", texts[1:]}
	return s, kind == "+" || kind == "-"
}

// Same returns the same text for all equivalent queries. query is as in a key: with its "?", or empty.
//
// Names and values are decoded as a form's are, so "?a=%78&" is "?a=x", except for bytes that are not UTF-8: the draft treats
// them all alike, which a handler need not. A query that handlers may parse differently is equivalent only to itself: see ambiguous.
func (s Search) Same(query string) string {
	if s.Counts() || ambiguous(query) {
		return query
	}
	type parameter struct{ name, value string }
	var list []parameter
	for piece := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		if piece == "" {
			continue
		}
		name, value, _ := strings.Cut(piece, "=")
		name = formDecode(name)
		if _, named := slices.BinarySearch(s.names, name); named == s.only {
			list = append(list, parameter{name, formDecode(value)})
		}
	}
	if s.anyOrder { // parameters of one name keep their order
		slices.SortStableFunc(list, func(a, b parameter) int { return cmp.Compare(a.name, b.name) })
	}
	b := []byte{'&'} // no query begins like this: they all have their "?"
	for i, p := range list {
		if i > 0 {
			b = append(b, '&')
		}
		b = append(append(append(b, url.QueryEscape(p.name)...), '='), url.QueryEscape(p.value)...)
	}
	return string(b)
}

// ambiguous reports whether handlers may parse a query differently. Some treat a bare ";" as "&": a parameter that does not count
// could then hide one that does. A "%" that begins no escape is kept by some; others drop the parameter, as net/url does,
// or refuse the request.
func ambiguous(query string) bool {
	if strings.IndexByte(query, ';') >= 0 {
		return true
	}
	for {
		_, rest, found := strings.Cut(query, "%")
		if !found {
			return false
		}
		if len(rest) < 2 || !hexDigit(rest[0]) || !hexDigit(rest[1]) {
			return true
		}
		query = rest[2:]
	}
}

// formDecode decodes a name or a value of a query. Malformed escapes stay as they are.
func formDecode(s string) string {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b = append(b, ' ')
		case s[i] == '%' && i+2 < len(s) && hexDigit(s[i+1]) && hexDigit(s[i+2]):
			b = append(b, unhex(s[i+1])<<4|unhex(s[i+2]))
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}

func hexDigit(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }
