package script

import (
	"runtime"
	"runtime/metrics"
)

// A script may hold so much memory, about as much as the longest string of Redis; Redis itself lets it have what the machine has.
//
// What a script holds cannot be asked for. So it is charged for what it takes: the large things by their size before they are made, the small
// by the number of instructions. What it gave back is not known, so the charge alone convicts nobody. Once it has grown by a step, the heap of
// the process is looked at, and if that has grown by more than the limit since the script began, what is garbage is collected and the heap
// looked at again: what is left cannot have passed the limit before the charge has grown by what is free.
const (
	maxMemory = 512 << 20
	// perInstruction is the most that one may take uncharged: a table with its first element.
	perInstruction = 600
)

// What tables take that no instruction makes, by measure.
const (
	bareTable = 150 // and 16 bytes for each element that it has room for
	tableSize = 800 // with its first element or field
	entrySize = 250 // each further field
)

const outOfMemory = "not enough memory"

// account is what a run was charged.
type account struct {
	charged, due int64 // bytes: in all, and when the heap is looked at again; 0 before the first time
	base         int64 // the heap then
}

// spend charges the script for n bytes, and ends it if they are too many.
func (m *Machine) spend(n int) {
	if n < 0 || n > m.memory {
		m.fail(outOfMemory)
	}
	m.charge(n)
}

// charge charges for what is there already, however large it is. To make it took as long as some instructions.
func (m *Machine) charge(n int) {
	m.run.heed(n)
	m.run.charge(int64(n))
	if m.run.killed != "" {
		m.fail(m.run.killed)
	}
	m.work(n / copied)
}

// copied is how many bytes are copied in the time of an instruction, new memory and its collection included.
const copied = 64

// fail ends the script with a message that no pcall keeps.
func (m *Machine) fail(message string) {
	m.run.killed = message
	m.state.RaiseError("%s", message)
}

// charge adds n bytes to the account, and looks at the heap when it is time.
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

// heapInUse is how many bytes objects take, live or not yet collected.
func heapInUse() int64 {
	sample := [1]metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample[:])
	return int64(sample[0].Value.Uint64())
}

// work counts what a function did as so many instructions: at the end of a slice others have their turn.
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
