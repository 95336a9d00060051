package httpcache

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// A record in Redis, after the header of internal/client/record, is one of five kinds, given by its first byte. Numbers are
// varints; texts and lists are preceded by their length:
//
//	'r'  ends, head, body    a response; head is everything but the body, with its length before it
//	'v'  ends, generation, fields, variants    an index: the answer varies, by these fields of a request
// 'p'  ends    a pass: the answer was for one client alone when it was last seen
//	's'  ends, generation, rule    a path: which parameters of its queries count
// 'b'  ends, version    a barrier: what was loaded before this version is void. The version is the last eight bytes
//
// ends is when the record expires, in unix milliseconds. It repeats Redis's TTL for the local tier, so that a hit need not ask Redis
// for the remaining time.

// format marks this package's records, so that nothing else is mistaken for one. Change it whenever the layout changes.
var format = record.FormatOf("httpcache/2")

// item is the decoded record of one key. At most one of the pointers is set. An item is never modified.
type item struct {
	found    lease.Found
	ends     int64
	response *response
	index    *index
	search   *searching
	pass     bool
	barrier  int64
	head     string // that the response was decoded from
}

// weight estimates the memory that a copy takes. An item with many short header fields is far larger than its record.
func (it *item) weight() int64 {
	const base, perField, perText = 800, 40, 16
	n := base + len(it.found.Raw)
	if r := it.response; r != nil {
		n += len(it.found.Raw) - len(r.body) // the texts of the head are copied
		n += perField*(len(r.header)+len(r.trailer)) + perText*(len(r.tags)+len(r.fields))
		for _, f := range r.header {
			n += perText * len(f.values)
		}
	}
	if ix := it.index; ix != nil {
		n += len(it.found.Raw) + perText*(len(ix.fields)+len(ix.variants))
	}
	return int64(n)
}

// response is a stored response.
type response struct {
	status  int
	policy  rfc9111.Policy
	epoch   int64     // the version of the purges when the handler was called
	tags    []string  // a purge may name any of them
	fields  []string  // of the request, which selected this variant,
	variant string    // and the values they had
	search  *searched // how its query is compared; nil: the key contains the whole query
	header  []field
	trailer []field
	body    []byte
}

// isTooOld reports whether a response was received, or confirmed, longer ago than this process's TTL. Another process, with a greater TTL, has
// stored it.
func (c *Cache) isTooOld(r *response, now time.Time) bool {
	return now.Sub(r.policy.Received) >= c.ns.TTL
}

// field is a header field, spelled as its handler spelled it, with its values in their order.
type field struct {
	name   string
	values []string
	added  bool // next to the values set by handlers around the cache; otherwise instead of them
}

// index lists the variants of a resource and the fields that select them.
type index struct {
	generation string   // part of the variants' keys: variants of another generation are out of reach
	fields     []string // canonical, sorted
	variants   []string // the names of the stored variants, the oldest first
}

// fieldsOf returns h as a list, sorted by name so that equal headers are equal bytes.
func fieldsOf(h http.Header, added map[string]bool) []field {
	list := make([]field, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		list = append(list, field{name, h[name], added[http.CanonicalHeaderKey(name)]})
	}
	return list
}

// addedOf returns the names of the fields that were added to the values of handlers around the cache.
func addedOf(list []field) map[string]bool {
	added := make(map[string]bool)
	for _, f := range list {
		if f.added {
			added[http.CanonicalHeaderKey(f.name)] = true
		}
	}
	return added
}

// sizeOf returns the length of the names and values of a list.
func sizeOf(list []field) (n int) {
	for _, f := range list {
		for _, v := range f.values {
			n += len(f.name) + len(v)
		}
	}
	return n
}

// headerOf returns the list as a header with canonical names. The slices of values are shared: callers may append, but must not change elements.
func headerOf(list []field) http.Header {
	h := make(http.Header, len(list)+2)
	for _, f := range list {
		if name := http.CanonicalHeaderKey(f.name); h[name] == nil {
			h[name] = slices.Clip(f.values)
		} else {
			h[name] = append(h[name], f.values...)
		}
	}
	return h
}

// encode returns the record that decode turns back into it. The record is usable for ttl.
func (it item) encode(id record.ID, ttl time.Duration) ([]byte, error) {
	begin := func(kind byte) []byte {
		h := record.Header{ID: id, Format: format, Fresh: ttl}
		return binary.AppendVarint(append(record.Begin(nil, h), kind), time.Now().Add(ttl).UnixMilli())
	}
	var rec []byte
	switch {
	case it.response != nil:
		head, body := it.response.encodeHead(), it.response.body
		rec = slices.Grow(begin('r'), len(head)+len(body)+binary.MaxVarintLen32)
		rec = append(appendText(rec, string(head)), body...)
	case it.index != nil:
		rec = appendText(begin('v'), it.index.generation)
		rec = appendTexts(appendTexts(rec, it.index.fields), it.index.variants)
	case it.search != nil:
		rec = appendTexts(appendText(begin('s'), it.search.generation), it.search.rule.Texts())
	case it.pass:
		rec = begin('p')
	default:
		rec = binary.BigEndian.AppendUint64(begin('b'), uint64(it.barrier))
	}
	if !record.Seal(rec) {
		return nil, fmt.Errorf("the response has %d bytes, and Redis takes at most %d", len(rec), record.MaxLen)
	}
	return rec, nil
}

func (r *response) encodeHead() []byte {
	head := binary.AppendUvarint(nil, uint64(r.status))
	p := r.policy
	head = binary.AppendVarint(head, p.Received.UnixMilli())
	for _, d := range []time.Duration{p.InitialAge, p.Lifetime, p.StaleWhileRevalidate, p.StaleIfError, p.Validate} {
		head = binary.AppendVarint(head, int64(d))
	}
	head = binary.AppendUvarint(head, uint64(p.Flags))
	head = binary.AppendVarint(head, r.epoch)
	head = appendTexts(appendTexts(head, r.tags), r.fields)
	head = appendText(head, r.variant)
	head = appendFields(appendFields(head, r.header), r.trailer)
	if r.search != nil {
		head = appendTexts(appendText(head, r.search.query), r.search.rule.Texts())
	}
	return head
}

// maxHead is far above the size of a response's head, or of an index. A longer one was not written by this package, and decoding it could
// take many times its length in memory.
const maxHead = 4 << 20

// decode decodes what was found under a key. A foreign or damaged record becomes an empty item, which is then replaced.
func decode(f lease.Found) item { return decodeLike(f, nil) }

// decodeLike is decode for a record that may look like known, which may be nil.
func decodeLike(f lease.Found, known *glimpse) item {
	it := item{found: f}
	if f.State != lease.Present || f.Kind != record.Value || f.Header.Format != format || f.Header.Flags != 0 || len(f.Body) == 0 {
		return it
	}
	ends, n := binary.Varint(f.Body[1:])
	if n <= 0 {
		return it
	}
	rest := f.Body[1+n:]
	switch f.Body[0] {
	case 'r':
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > min(uint64(len(rest)-n), maxHead) {
			return it
		}
		head := rest[n : n+int(length)]
		if known != nil && string(head) == known.head {
			r := *known.response
			it.head, it.response = known.head, &r
		} else {
			it.head = string(head)
			it.response = decodeHead(it.head)
		}
		if it.response != nil {
			it.response.body = rest[n+int(length):]
		}
	case 'v':
		if len(rest) > maxHead {
			return it
		}
		s := scanner{rest: string(rest)}
		ix := &index{generation: s.text(), fields: s.texts(), variants: s.texts()}
		if s.done() {
			it.index = ix
		}
	case 's':
		if len(rest) > maxHead {
			return it
		}
		s := scanner{rest: string(rest)}
		found := &searching{generation: s.text()}
		var ok bool
		if found.rule, ok = rfc9111.SearchOf(s.texts()); ok && s.done() {
			it.search = found
		}
	case 'p':
		it.pass = true
	case 'b':
		if len(rest) == 8 {
			it.barrier = int64(binary.BigEndian.Uint64(rest))
		}
	}
	it.ends = ends
	return it
}

func decodeHead(head string) *response {
	s := scanner{rest: head}
	r := &response{status: int(s.uint())}
	r.policy.Received = time.UnixMilli(s.int())
	for _, d := range []*time.Duration{&r.policy.InitialAge, &r.policy.Lifetime, &r.policy.StaleWhileRevalidate, &r.policy.StaleIfError, &r.policy.Validate} {
		*d = time.Duration(s.int())
	}
	r.policy.Flags = rfc9111.Flags(s.uint())
	r.epoch = s.int()
	r.tags, r.fields, r.variant = s.texts(), s.texts(), s.text()
	r.header, r.trailer = s.fields(), s.fields()
	if s.rest != "" && !s.failed {
		query := s.text()
		rule, ok := rfc9111.SearchOf(s.texts())
		if !ok {
			return nil
		}
		r.search = newSearched(rule, query)
	}
	if !s.done() || r.status < 200 || r.status > 999 {
		return nil
	}
	return r
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

func appendTexts(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = appendText(dst, s)
	}
	return dst
}

// added precedes the name of a field that was added to others. No name begins with it.
const added = " "

func appendFields(dst []byte, list []field) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, f := range list {
		name := f.name
		if f.added {
			name = added + name
		}
		dst = appendTexts(appendText(dst, name), f.values)
	}
	return dst
}

// scanner reads what the append functions wrote. The texts it returns share memory with the record. After the first malformed element it returns
// nothing more, and does not report done.
type scanner struct {
	rest   string
	failed bool
	room   []string // for the values of fields, most of which have one
}

func (s *scanner) done() bool { return !s.failed && s.rest == "" }

func (s *scanner) fail() { s.failed, s.rest = true, "" }

func (s *scanner) uint() uint64 {
	v, n := binary.Uvarint([]byte(s.rest[:min(len(s.rest), binary.MaxVarintLen64)]))
	if n <= 0 {
		s.fail()
		return 0
	}
	s.rest = s.rest[n:]
	return v
}

func (s *scanner) int() int64 {
	u := s.uint()
	return int64(u>>1) ^ -int64(u&1)
}

func (s *scanner) text() string {
	n := s.count()
	text := s.rest[:n]
	s.rest = s.rest[n:]
	return text
}

// count reads the length of a text or of a list. Each element of a list takes at least one byte.
func (s *scanner) count() int {
	n := s.uint()
	if n > uint64(len(s.rest)) {
		s.fail()
		return 0
	}
	return int(n)
}

func (s *scanner) texts() []string {
	n := s.count()
	if n == 0 {
		return nil
	}
	if n > cap(s.room)-len(s.room) {
		s.room = make([]string, 0, n)
	}
	start := len(s.room)
	for range n {
		s.room = append(s.room, s.text())
	}
	return s.room[start:len(s.room):len(s.room)]
}

func (s *scanner) fields() []field {
	n := s.count()
	most := min(n, 64) // a false count must not allocate more
	list := make([]field, 0, most)
	s.room = make([]string, 0, most)
	for len(list) < n && !s.failed {
		name, plus := strings.CutPrefix(s.text(), added)
		list = append(list, field{name, s.texts(), plus})
	}
	return list
}
