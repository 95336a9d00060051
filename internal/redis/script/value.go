package script

import (
	"bytes"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// value turns the first reply in b into a Lua value. Statuses and errors are tables with the field ok or err; null is false in RESP2 and nil
// in RESP3; other types of RESP3 are tables with one field named after the type.
func (m *Machine) value(b []byte) (v lua.LValue, rest []byte) {
	l := m.state
	end := bytes.IndexByte(b, '\r')
	head, rest := b[1:end], b[end+2:]
	size := func() int {
		n, _ := strconv.Atoi(string(head))
		return n
	}
	named := func(name string, v lua.LValue) *lua.LTable {
		m.spend(tableSize)
		return tableOf(l, name, v)
	}
	m.work(1)
	switch b[0] {
	case '+':
		return named("ok", lua.LString(head)), rest
	case '-':
		return named("err", lua.LString(head)), rest
	case ':':
		n, _ := strconv.ParseInt(string(head), 10, 64)
		return lua.LNumber(n), rest
	case '$':
		n := size()
		if n < 0 {
			return lua.LFalse, rest
		}
		return lua.LString(rest[:n]), rest[n+2:]
	case '*', '>':
		n := size()
		if n < 0 {
			return lua.LFalse, rest
		}
		m.spend(bareTable + 16*n)
		t := l.CreateTable(n, 0)
		for i := range n {
			v, rest = m.value(rest)
			t.RawSetInt(i+1, v) // a nil leaves a hole
		}
		return t, rest
	case '%':
		m.spend(tableSize + entrySize*size())
		t := l.CreateTable(0, 1)
		for range size() {
			var key lua.LValue
			key, rest = m.value(rest)
			v, rest = m.value(rest)
			t.RawSet(key, v)
		}
		return named("map", t), rest
	case '~':
		m.spend(tableSize + entrySize*size())
		t := l.CreateTable(0, 1)
		for range size() {
			v, rest = m.value(rest)
			t.RawSet(v, lua.LTrue)
		}
		return named("set", t), rest
	case ',':
		f, _ := strconv.ParseFloat(string(head), 64)
		return named("double", lua.LNumber(f)), rest
	case '#':
		return lua.LBool(head[0] == 't'), rest
	case '(':
		return named("big_number", lua.LString(head)), rest
	case '=':
		n := size()
		m.spend(tableSize)
		t := l.CreateTable(0, 2)
		t.RawSetString("format", lua.LString(rest[:3]))
		t.RawSetString("string", lua.LString(rest[4:n]))
		return named("verbatim_string", t), rest[n+2:]
	}
	return lua.LNil, rest // '_'
}

// give returns v from a function called by Lua.
func give(l *lua.LState, v lua.LValue) int {
	l.Push(v)
	return 1
}

// tableOf makes a table with one field.
func tableOf(l *lua.LState, name string, v lua.LValue) *lua.LTable {
	t := l.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}

// replier writes a script's result.
type replier struct {
	m        *Machine
	w        *resp.Writer
	elements int // of all lists, sets and maps so far
}

// longestReply is how many elements a reply may have. The reply is written after the script has ended, when no other client gets a turn and
// nothing can kill it.
const longestReply = 1_000_000

// deepestReply is how deep tables may be nested: Redis's Lua has no room for more.
const deepestReply = 7995

// value writes v: a list up to its first nil, a number without its fraction. It reports false if the reply is too long.
func (r *replier) value(v lua.LValue, depth int) bool {
	switch v := v.(type) {
	case lua.LString:
		r.w.BulkString(string(v))
	case lua.LNumber:
		r.w.Int(whole(float64(v)))
	case lua.LBool:
		switch {
		case r.m.proto == 3:
			r.w.Bool(bool(v))
		case bool(v):
			r.w.Int(1)
		default:
			r.w.Null()
		}
	case *lua.LTable:
		if depth == deepestReply {
			r.w.Error("ERR reached lua stack limit")
			break
		}
		return r.table(v, depth+1)
	default:
		r.w.Null()
	}
	return r.fits()
}

// fits reports whether the reply is short enough. A table may occur in many places, so even a small script can make an endless reply.
func (r *replier) fits() bool { return r.elements <= longestReply && r.w.Len() < r.m.memory }

// more counts n elements before they are written; a list that contains itself is counted every time.
func (r *replier) more(n int) (fits bool) {
	r.elements += n
	return r.fits()
}

func (r *replier) table(t *lua.LTable, depth int) bool {
	if err, ok := t.RawGetString("err").(lua.LString); ok {
		r.w.Error(string(err))
	} else if status, ok := t.RawGetString("ok").(lua.LString); ok {
		r.w.Simple(oneLine(string(status)))
	} else if f, ok := t.RawGetString("double").(lua.LNumber); ok {
		r.w.Double(float64(f))
	} else if entries, ok := t.RawGetString("map").(*lua.LTable); ok {
		n := length(entries)
		r.w.Map(n)
		return r.more(2*n) && r.entries(entries, depth, true)
	} else if members, ok := t.RawGetString("set").(*lua.LTable); ok {
		n := length(members)
		r.w.Set(n)
		return r.more(n) && r.entries(members, depth, false)
	} else if digits, ok := t.RawGetString("big_number").(lua.LString); ok {
		r.w.BigNumber(oneLine(string(digits)))
	} else if text, ok := t.RawGetString("verbatim_string").(*lua.LTable); ok {
		r.w.Verbatim(lua.LVAsString(text.RawGetString("format")), lua.LVAsString(text.RawGetString("string")))
	} else {
		return r.list(t, depth)
	}
	return r.fits()
}

// entries writes the keys of a table, and their values if wanted.
func (r *replier) entries(t *lua.LTable, depth int, values bool) bool {
	fits := true
	t.ForEach(func(k, v lua.LValue) {
		fits = fits && r.value(k, depth) && (!values || r.value(v, depth))
	})
	return fits
}

func (r *replier) list(t *lua.LTable, depth int) bool {
	n := 0
	for t.RawGetInt(n+1) != lua.LNil {
		n++
	}
	r.w.Array(n)
	if !r.more(n) {
		return false
	}
	for i := range n {
		if !r.value(t.RawGetInt(i+1), depth) {
			return false
		}
	}
	return r.fits()
}

func length(t *lua.LTable) (n int) {
	t.ForEach(func(_, _ lua.LValue) { n++ })
	return n
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

func oneLine(s string) string { return lineBreaks.Replace(s) }
