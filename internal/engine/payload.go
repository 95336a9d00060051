package engine

import (
	"math"

	"github.com/mayflycache/mayfly/internal/engine/rdb"
	"github.com/mayflycache/mayfly/internal/engine/values"
)

// appendValue appends the type and the value of o to a payload. Collections have their plain forms, element by element, which Redis reads
// and makes small again.
func appendValue(b []byte, o *object) []byte {
	switch v := o.coll.(type) {
	case nil:
		return rdb.AppendString(append(b, rdb.TypeString), o.str)
	case *values.ListValue:
		b = rdb.AppendLen(append(b, rdb.TypeList), uint64(v.Len()))
		v.Each(func(element []byte) bool {
			b = rdb.AppendString(b, element)
			return true
		})
		return b
	case *values.SetValue:
		b = rdb.AppendLen(append(b, rdb.TypeSet), uint64(v.Len()))
		v.Each(func(member string) bool {
			b = rdb.AppendString(b, []byte(member))
			return true
		})
		return b
	case *values.ZSetValue:
		b = rdb.AppendLen(append(b, rdb.TypeZSet2), uint64(v.Len()))
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

// appendHash appends a hash: if fields have deadlines, the earliest is written in full and each as one more than its distance from that.
func appendHash(b []byte, h *values.HashValue) []byte {
	first := h.NextDeadline()
	if first == 0 {
		b = append(b, rdb.TypeHash)
	} else {
		b = rdb.AppendMilliseconds(append(b, rdb.TypeHashMetadata), first)
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

// readValue reads what appendValue wrote, or Redis. A string is returned as such, anything else as a value.
func (e *Engine) readValue(r *rdb.Reader) (s []byte, v values.Value, ok bool) {
	switch kind := r.Byte(); kind {
	case rdb.TypeString:
		s = r.Bytes()
		return s, nil, r.Done()
	case rdb.TypeList:
		v, ok = e.readList(readStrings(r, 1))
	case rdb.TypeListQuicklist2:
		v, ok = e.readQuicklist(r)
	case rdb.TypeSet:
		v, ok = e.readSet(readStrings(r, 1), nil)
	case rdb.TypeSetIntset:
		v, ok = e.readSet(rdb.Intset(r.Bytes()))
	case rdb.TypeSetListpack:
		v, ok = e.readSet(rdb.Listpack(r.Bytes()))
	case rdb.TypeZSet, rdb.TypeZSet2:
		v, ok = e.readZSet(r, kind)
	case rdb.TypeZSetListpack:
		v, ok = e.readSmallZSet(rdb.Listpack(r.Bytes()))
	case rdb.TypeHash:
		v, ok = e.readHash(readStrings(r, 2), 2)
	case rdb.TypeHashMetadata:
		v, ok = e.readTimedHash(r)
	case rdb.TypeHashListpack:
		v, ok = e.readSmallHash(r, 2)
	case rdb.TypeHashListpackEx:
		r.Milliseconds() // the earliest of the deadlines that follow
		v, ok = e.readSmallHash(r, 3)
	}
	return nil, v, ok && r.Done()
}

// readStrings reads a number and so many strings, times each.
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

// What a payload holds is never empty, and no element is there twice.

func (e *Engine) readList(elements [][]byte) (values.Value, bool) {
	list := values.NewList()
	list.Grow(elements, e.limits)
	for _, b := range elements {
		list.PushBack(b, e.limits)
	}
	return list, list.Len() > 0
}

// readQuicklist reads a list in nodes: each an element by itself, or a listpack of several.
func (e *Engine) readQuicklist(r *rdb.Reader) (values.Value, bool) {
	const single, packed = 1, 2
	var elements [][]byte
	for range r.Len() {
		switch form, b := r.Number(), r.Bytes(); form {
		case single:
			elements = append(elements, b)
		case packed:
			list, err := rdb.Listpack(b)
			if err != nil {
				return nil, false
			}
			elements = append(elements, list...)
		default:
			return nil, false
		}
		if r.Err() != nil {
			return nil, false
		}
	}
	return e.readList(elements)
}

func (e *Engine) readSet(members [][]byte, err error) (values.Value, bool) {
	if err != nil || len(members) == 0 {
		return nil, false
	}
	set := values.NewSetFor(members[0], len(members), e.limits)
	for _, m := range members {
		if !set.Add(m, e.limits) {
			return nil, false
		}
	}
	return set, true
}

func (e *Engine) readZSet(r *rdb.Reader, kind byte) (values.Value, bool) {
	z := values.NewZSet()
	for range r.Len() {
		member := r.Bytes()
		var score float64
		if kind == rdb.TypeZSet2 {
			score = r.Double()
		} else {
			score = r.OldDouble()
		}
		if r.Err() != nil || !e.rank(z, member, score) {
			return nil, false
		}
	}
	return z, z.Len() > 0
}

func (e *Engine) readSmallZSet(list [][]byte, err error) (values.Value, bool) {
	if err != nil || len(list)%2 != 0 {
		return nil, false
	}
	z := values.NewZSet()
	for ; len(list) > 0; list = list[2:] {
		if score, ok := values.ParseFloat(list[1]); !ok || !e.rank(z, list[0], score) {
			return nil, false
		}
	}
	return z, z.Len() > 0
}

// rank adds a member to z, if it is new and its score is a number.
func (e *Engine) rank(z *values.ZSetValue, member []byte, score float64) bool {
	if _, there := z.Score(member); there || math.IsNaN(score) {
		return false
	}
	z.Set(member, score, e.limits)
	return true
}

// readHash makes a hash of fields, each with a value and, if each is 3, a deadline as text.
func (e *Engine) readHash(list [][]byte, each int) (values.Value, bool) {
	if len(list) == 0 || len(list)%each != 0 {
		return nil, false
	}
	h := values.NewHash()
	for ; len(list) > 0; list = list[each:] {
		if !h.Set(list[0], list[1], false, e.limits) {
			return nil, false
		}
	}
	return h, true
}

func (e *Engine) readSmallHash(r *rdb.Reader, each int) (values.Value, bool) {
	list, err := rdb.Listpack(r.Bytes())
	if err != nil {
		return nil, false
	}
	v, ok := e.readHash(list, each)
	if !ok || each == 2 {
		return v, ok
	}
	h := v.(*values.HashValue)
	h.Volatile()
	for ; len(list) > 0; list = list[each:] {
		ms, ok := values.ParseInt(list[2])
		if !ok || ms < 0 {
			return nil, false
		}
		if ms > 0 {
			h.SetDeadline(list[0], ms)
		}
	}
	return h, true
}

func (e *Engine) readTimedHash(r *rdb.Reader) (values.Value, bool) {
	first := r.Milliseconds()
	h := values.NewHash()
	h.Volatile()
	for range r.Len() {
		distance := r.Number()
		field, value := r.Bytes(), r.Bytes()
		if r.Err() != nil || !h.Set(field, value, false, e.limits) {
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
