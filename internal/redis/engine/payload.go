package engine

import (
	"math"

	"github.com/mayflycache/mayfly/internal/redis/rdb"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// appendValue appends the type and the value of o to a payload.
func appendValue(b []byte, o *object) []byte { return appendData(append(b, rdbType(o)), o) }

// appendKeyed is appendValue for a file, where the key stands between the two.
func appendKeyed(b []byte, o *object) []byte {
	return appendData(rdb.AppendString(append(b, rdbType(o)), values.Bytes(o.key)), o)
}

// rdbType is the RDB type in which appendData writes o. Collections are written in their plain forms, element by element, which Redis reads
// and compacts again.
func rdbType(o *object) byte {
	switch v := o.coll.(type) {
	case *values.ListValue:
		return rdb.TypeList
	case *values.SetValue:
		return rdb.TypeSet
	case *values.ZSetValue:
		return rdb.TypeZSet2
	case *values.HashValue:
		if v.NextDeadline() != 0 {
			return rdb.TypeHashMetadata
		}
		return rdb.TypeHash
	}
	return rdb.TypeString
}

func appendData(b []byte, o *object) []byte {
	switch v := o.coll.(type) {
	case nil:
		return rdb.AppendString(b, o.str)
	case *values.ListValue:
		b = rdb.AppendLen(b, uint64(v.Len()))
		for element := range v.Each {
			b = rdb.AppendString(b, element)
		}
		return b
	case *values.SetValue:
		b = rdb.AppendLen(b, uint64(v.Len()))
		for member := range v.Each {
			b = rdb.AppendString(b, []byte(member))
		}
		return b
	case *values.ZSetValue:
		b = rdb.AppendLen(b, uint64(v.Len()))
		v.Each(0, v.Len(), true, func(member string, score float64) bool {
			b = rdb.AppendDouble(rdb.AppendString(b, []byte(member)), score)
			return true
		})
		return b
	case *values.HashValue:
		return appendHash(b, v)
	}
	panic("engine: no payload of a " + o.kind().String())
}

// appendHash appends a hash. If fields have deadlines, the earliest is written in full, and each deadline as its distance from that plus one.
func appendHash(b []byte, h *values.HashValue) []byte {
	first := h.NextDeadline()
	if first != 0 {
		b = rdb.AppendMilliseconds(b, first)
	}
	b = rdb.AppendLen(b, uint64(h.Len()))
	h.Each(func(field, value []byte, deadline int64) bool {
		switch {
		case first == 0:
		case deadline == 0:
			b = rdb.AppendLen(b, 0)
		default:
			b = rdb.AppendLen(b, uint64(deadline-first)+1)
		}
		b = rdb.AppendString(rdb.AppendString(b, field), value)
		return true
	})
	return b
}

// payload is a value as appendValue or Redis wrote it, while it is being read.
type payload struct {
	*rdb.Reader
	limits values.Limits
}

// readValue reads all of the payload. A string is returned in s, any other value in v.
func (p payload) readValue() (s []byte, v values.Value, ok bool) {
	s, v, ok = p.readData(p.Byte())
	return s, v, ok && p.Done()
}

// readData reads a value of this RDB type.
func (p payload) readData(kind byte) (s []byte, v values.Value, ok bool) {
	switch kind {
	case rdb.TypeString:
		s = p.Bytes()
		return s, nil, p.Err() == nil
	case rdb.TypeList:
		v, ok = p.readList(readStrings(p.Reader, 1))
	case rdb.TypeListQuicklist2:
		v, ok = p.readQuicklist()
	case rdb.TypeSet:
		v, ok = p.readSet(readStrings(p.Reader, 1))
	case rdb.TypeSetIntset:
		v, ok = p.readSet(p.Intset())
	case rdb.TypeSetListpack:
		v, ok = p.anyLength().readSmallSet()
	case rdb.TypeZSet, rdb.TypeZSet2:
		v, ok = p.readZSet(kind)
	case rdb.TypeZSetListpack:
		v, ok = p.anyLength().readSmallZSet()
	case rdb.TypeHash:
		v, ok = p.readHash(readStrings(p.Reader, 2), 2)
	case rdb.TypeHashMetadata:
		v, ok = p.readTimedHash()
	case rdb.TypeHashListpack:
		v, ok = p.anyLength().readSmallHash(2)
	case rdb.TypeHashListpackEx:
		p.Milliseconds() // skips the earliest of the deadlines that follow
		v, ok = p.anyLength().readSmallHash(3)
	}
	return nil, v, ok && p.Err() == nil
}

// readStrings reads a number and that many groups of each strings.
func readStrings(r *rdb.Reader, each int) [][]byte {
	var list [][]byte
	for range r.Len() * each {
		list = append(list, r.Bytes())
		if r.Err() != nil {
			return nil
		}
	}
	return list
}

// A valid payload is never empty, and no element occurs twice.

func (p payload) readList(elements [][]byte) (values.Value, bool) {
	list := values.NewLongList()
	for _, b := range elements {
		list.PushBack(b, p.limits)
	}
	list.Settle(p.limits)
	return list, list.Len() > 0
}

// readQuicklist reads a list of nodes, each a single element or a listpack of several.
func (p payload) readQuicklist() (values.Value, bool) {
	const single, packed = 1, 2
	list := values.NewLongList()
	for range p.Len() {
		switch p.Number() {
		case single:
			list.PushChunk([][]byte{p.Bytes()}, true)
		case packed:
			list.PushChunk(p.Listpack(), false)
		default:
			return nil, false
		}
		if p.Err() != nil {
			return nil, false
		}
	}
	list.Settle(p.limits)
	return list, list.Len() > 0
}

// anyLength returns p without limits on the length of elements, where Redis checks only their number: the limits may have been lower when the
// payload was written.
func (p payload) anyLength() payload {
	p.limits.HashMaxListpackValue, p.limits.SetMaxListpackValue, p.limits.ZSetMaxListpackValue = math.MaxInt, math.MaxInt, math.MaxInt
	return p
}

func (p payload) readSet(members [][]byte) (values.Value, bool) {
	set := values.NewSet()
	if len(members) > p.limits.SetMaxIntsetEntries { // Redis checks no other limit, whatever the members are
		set = values.NewBigSet(len(members))
	}
	return p.fill(set, members)
}

// readSmallSet reads a set kept as a listpack: not a set of integers, even if all its members are integers.
func (p payload) readSmallSet() (values.Value, bool) {
	members := p.Listpack()
	return p.fill(values.NewSmallSet(len(members)), members)
}

func (p payload) fill(set *values.SetValue, members [][]byte) (values.Value, bool) {
	for _, m := range members {
		if !set.Add(m, p.limits) {
			return nil, false
		}
	}
	return set, len(members) > 0
}

func (p payload) readZSet(kind byte) (values.Value, bool) {
	z := values.NewZSet()
	for range p.Len() {
		member := p.Bytes()
		var score float64
		if kind == rdb.TypeZSet2 {
			score = p.Double()
		} else {
			score = p.OldDouble()
		}
		if p.Err() != nil || !p.rank(z, member, score) {
			return nil, false
		}
	}
	return z, z.Len() > 0
}

func (p payload) readSmallZSet() (values.Value, bool) {
	list := p.Listpack()
	if len(list)%2 != 0 {
		return nil, false
	}
	z := values.NewZSet()
	for ; len(list) > 0; list = list[2:] {
		if score, ok := values.ParseFloat(list[1]); !ok || !p.rank(z, list[0], score) {
			return nil, false
		}
	}
	return z, z.Len() > 0
}

// rank adds a member to z, and reports whether it is new and its score is a number.
func (p payload) rank(z *values.ZSetValue, member []byte, score float64) bool {
	if _, there := z.Score(member); there || math.IsNaN(score) {
		return false
	}
	z.Set(member, score, p.limits)
	return true
}

// readHash makes a hash of fields, each with a value and, if each is 3, a deadline as a string.
func (p payload) readHash(list [][]byte, each int) (values.Value, bool) {
	if len(list) == 0 || len(list)%each != 0 {
		return nil, false
	}
	h := values.NewHash()
	for ; len(list) > 0; list = list[each:] {
		if !h.Set(list[0], list[1], false, p.limits) {
			return nil, false
		}
	}
	return h, true
}

func (p payload) readSmallHash(each int) (values.Value, bool) {
	list := p.Listpack()
	v, ok := p.readHash(list, each)
	if !ok || each == 2 {
		return v, ok
	}
	h := v.(*values.HashValue)
	h.Volatile()
	for i := len(list) - each; i >= 0; i -= each { // backwards: SetDeadline puts a field before others with the same deadline
		ms, ok := values.ParseInt(list[i+2])
		if !ok || ms < 0 {
			return nil, false
		}
		if ms > 0 {
			h.SetDeadline(list[i], ms)
		}
	}
	return h, true
}

func (p payload) readTimedHash() (values.Value, bool) {
	first := p.Milliseconds()
	h := values.NewHash()
	h.Volatile()
	for range p.Len() {
		distance := p.Number()
		field, value := p.Bytes(), p.Bytes()
		if p.Err() != nil || !h.Set(field, value, false, p.limits) {
			return nil, false
		}
		if distance > 0 {
			ms := first + int64(distance-1)
			if ms <= 0 {
				return nil, false
			}
			h.SetDeadline(field, ms)
		}
	}
	return h, h.Len() > 0
}
