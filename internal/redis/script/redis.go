package script

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// redisLibrary is the table redis.
func (m *Machine) redisLibrary() *lua.LTable {
	t := m.state.NewTable()
	m.state.SetFuncs(t, map[string]lua.LGFunction{
		"call":               func(l *lua.LState) int { return m.call(l, true) },
		"pcall":              func(l *lua.LState) int { return m.call(l, false) },
		"error_reply":        func(l *lua.LState) int { return single(l, "err") },
		"status_reply":       func(l *lua.LState) int { return single(l, "ok") },
		"sha1hex":            m.sha1hex,
		"setresp":            m.setresp,
		"log":                m.log,
		"debug":              func(*lua.LState) int { return 0 },
		"set_repl":           m.setRepl,
		"breakpoint":         func(l *lua.LState) int { return give(l, lua.LFalse) },
		"acl_check_cmd":      m.aclCheck,
		"replicate_commands": func(l *lua.LState) int { return give(l, lua.LTrue) },
	})
	for name, n := range map[string]int{
		"LOG_DEBUG": 0, "LOG_VERBOSE": 1, "LOG_NOTICE": 2, "LOG_WARNING": 3,
		"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3,
	} {
		t.RawSetString(name, lua.LNumber(n))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(m.host.Version()))
	t.RawSetString("REDIS_VERSION_NUM", lua.LNumber(versionNumber(m.host.Version())))
	return t
}

// versionNumber is a version as Redis encodes it: a byte for each part.
func versionNumber(version string) (n int) {
	for part := range strings.SplitSeq(version, ".") {
		p, _ := strconv.Atoi(part)
		n = n<<8 | p
	}
	return n
}

// perCall is the number of instructions that a command counts for. It makes the run read the clock after each command, which may take any time.
const perCall = askClock

// call runs a command. An error is raised or, in pcall, returned as a table.
func (m *Machine) call(l *lua.LState, raise bool) int {
	fail := func(message string) int {
		if raise {
			m.raise(l, message)
		}
		t := tableOf(l, "err", lua.LString(message))
		t.RawSetString("ignore_error_stats_update", lua.LTrue) // as Redis marks it, so that it counts the error once
		return give(l, t)
	}
	args, wrong := m.arguments(l)
	if wrong != "" {
		return fail(wrong)
	}
	reply := m.host.Call(args)
	m.work(perCall)
	m.charge(4 * len(reply))
	if len(reply) > 0 && reply[0] == '-' {
		return fail(string(bytes.TrimRight(reply[1:], "\r\n")))
	}
	value, _ := m.value(reply)
	return give(l, value)
}

// arguments returns the arguments of a command, or what is wrong with them.
func (m *Machine) arguments(l *lua.LState) (args [][]byte, wrong string) {
	n := l.GetTop()
	if n == 0 {
		return nil, "ERR Please specify at least one argument for this redis lib call"
	}
	args = make([][]byte, n)
	for i := range args {
		switch v := l.Get(i + 1).(type) {
		case lua.LString:
			m.spend(len(v))
			args[i] = []byte(v)
		case lua.LNumber:
			args[i] = appendNumber(nil, float64(v))
		default:
			return nil, "ERR Lua redis lib command arguments must be strings or integers"
		}
	}
	return args, ""
}

// aclCheck is redis.acl_check_cmd: every existing command is allowed.
func (m *Machine) aclCheck(l *lua.LState) int {
	args, wrong := m.arguments(l)
	if wrong == "" && !m.host.Has(args) {
		wrong = "ERR Invalid command passed to redis.acl_check_cmd()"
	}
	if wrong != "" {
		m.raise(l, wrong)
	}
	return give(l, lua.LTrue)
}

// log is redis.log. There is no log, but arguments that Redis refuses are refused.
func (m *Machine) log(l *lua.LState) int {
	level, isNumber := numberOf(l.Get(1))
	switch {
	case l.GetTop() < 2:
		m.raise(l, "ERR redis.log() requires two arguments or more.")
	case !isNumber:
		m.raise(l, "ERR First argument must be a number (log level).")
	case level < 0 || level > 3:
		m.raise(l, "ERR Invalid log level.")
	}
	return 0
}

// setRepl is redis.set_repl, which changes nothing: all writes of a script go to the replicas and the journal.
func (m *Machine) setRepl(l *lua.LState) int {
	if l.GetTop() != 1 {
		m.raise(l, "ERR redis.set_repl() requires one argument.")
	}
	if flags, _ := numberOf(l.Get(1)); flags < 0 || flags > 3 {
		m.raise(l, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	return 0
}

// numberOf is a value as an integer; ok is false if it is not one.
func numberOf(v lua.LValue) (n int64, ok bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return whole(float64(v)), true
	case lua.LString:
		f, ok := parseNumber(string(v))
		return whole(f), ok
	}
	return 0, false
}

// appendNumber formats a number as an argument: as Redis writes doubles, except for NaN, and for zero, which has no sign.
func appendNumber(dst []byte, f float64) []byte {
	if math.IsNaN(f) {
		return appendSpecial(dst, f)
	}
	return resp.AppendDouble(dst, f+0) // -0 + 0 is 0
}

// single makes the table for redis.error_reply and redis.status_reply. An error without a code gets one.
func single(l *lua.LState, field string) int {
	text, ok := l.Get(1).(lua.LString)
	if !ok || l.GetTop() != 1 {
		field, text = "err", "ERR wrong number or type of arguments"
	} else if field == "err" {
		s := strings.TrimRight(strings.TrimPrefix(string(text), "-"), "\r\n")
		if !strings.Contains(s, " ") {
			s = "ERR " + s
		}
		text = lua.LString(s)
	}
	return give(l, tableOf(l, field, text))
}

func (m *Machine) sha1hex(l *lua.LState) int {
	if l.GetTop() != 1 {
		m.raise(l, "ERR wrong number of arguments")
	}
	sum := sha1.New()
	for text := l.ToString(1); text != ""; {
		piece := text[:min(len(text), 1<<16)]
		text = text[len(piece):]
		sum.Write([]byte(piece))
		m.work(len(piece) / copied)
	}
	return give(l, lua.LString(hex.EncodeToString(sum.Sum(nil))))
}

func (m *Machine) setresp(l *lua.LState) int {
	if l.GetTop() != 1 {
		m.raise(l, "ERR redis.setresp() requires one argument.")
	}
	proto := l.ToInt(1)
	if proto != 2 && proto != 3 {
		m.raise(l, "ERR RESP version must be 2 or 3.")
	}
	m.proto = proto
	m.host.SetProto(proto)
	return 0
}
