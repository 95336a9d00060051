package script

import (
	"runtime"
	"runtime/metrics"

	lua "github.com/yuin/gopher-lua"
)

// A script may hold a limited amount of memory, about as much as Redis's longest string. Redis itself lets it take all of the machine's.
//
// The memory held by a script cannot be measured. So a script is charged for what it allocates: for large objects by their size before they
// are made, and for small ones by the number of instructions. Nobody knows what it has freed, so the charge alone ends no script. Each time the
// charge has grown by a step, the process's heap is read. If the heap has grown by more than the limit since the script began, garbage is
// collected and the heap is read again. The difference to the limit is how far the charge may grow before the next check.
const (
	maxMemory = 512 << 20
	// perInstruction is the most that one instruction may allocate uncharged: a table with its first element.
	perInstruction = 600
)

// Measured sizes of tables that are not made by an instruction.
const (
	bareTable = 150 // and 16 bytes for each element it has room for
	tableSize = 800 // with its first element or field
	entrySize = 250 // each further field
)

const outOfMemory = "not enough memory"

// account is what a run has been charged.
type account struct {
	charged, due int64 // bytes: in total, and when the heap is read again; 0 before the first time
	base         int64 // the heap near the start of the run
}

// spend charges the script for n bytes, and ends the script if they are too many.
func (m *Machine) spend(n int) {
	if n < 0 || n > m.memory {
		m.fail(outOfMemory)
	}
	m.charge(n)
}

// charge charges for n bytes that exist already, and counts the work of making them.
func (m *Machine) charge(n int) {
	m.run.heed(n)
	m.run.charge(int64(n))
	if m.run.killed != "" {
		m.fail(m.run.killed)
	}
	m.work(n / copied)
}

// copied is how many bytes are copied in the time of an instruction, allocation and garbage collection included.
const copied = 64

// fail ends the script with a message that pcall does not catch.
func (m *Machine) fail(message string) {
	m.run.killed = message
	m.state.RaiseError("%s", message)
}

// charge adds n bytes to the account, and reads the heap when that is due.
func (r *Run) charge(n int64) {
	limit := int64(r.m.memory)
	if r.charged += n; r.charged < max(r.due, limit/32) {
		return
	}
	heap := heapInUse()
	if r.due == 0 {
		r.base = max(heap-limit/32, 0)
	}
	r.due = r.charged + limit/32
	if r.charged < limit || heap-r.base < limit {
		return
	}
	runtime.GC()
	left := limit - (heapInUse() - r.base)
	if left <= 0 {
		r.killed = outOfMemory
	}
	r.due = max(r.due, r.charged+left)
}

// heapInUse is the size of all objects in bytes, live or not yet collected.
func heapInUse() int64 {
	sample := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample[:])
	return int64(sample[0].Value.Uint64())
}

// held returns what collectgarbage reports for a script, in KB: what the script was charged for, plus what Redis's Lua begins with.
func (m *Machine) held() float64 { return 32 + float64(m.run.charged)/1024 }

// collectgarbage is Lua's function. It collects nothing: the process does that.
func (m *Machine) collectgarbage(l *lua.LState) int {
	switch option := l.OptString(1, "collect"); option {
	case "collect", "stop", "restart":
	case "count":
		return give(l, lua.LNumber(m.held()))
	case "step":
		return give(l, lua.LFalse)
	case "setpause", "setstepmul":
		return give(l, lua.LNumber(200))
	default:
		l.ArgError(1, "invalid option '"+option+"'")
	}
	return give(l, lua.LNumber(0))
}

// work counts a function's work as n instructions. At the end of a slice other clients get their turn.
func (m *Machine) work(n int) {
	r := m.run
	asked := r.budget / askClock
	if r.budget -= n; r.budget <= 0 || r.budget/askClock != asked && r.late() {
		r.pause()
	}
	if r.killed != "" {
		m.state.RaiseError("%s", r.killed)
	}
}
