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
// looked at again.
const (
	maxMemory = 512 << 20
	// perInstruction is the most that one may take uncharged: a table with its first element.
	perInstruction = 600
)

const outOfMemory = "not enough memory"

// account is what a run was charged.
type account struct {
	charged, looked int64 // bytes: in all, and when the heap was looked at last
	base            int64 // the heap then, the first time
}

// spend charges the script for n bytes, and ends it if they are too many.
func (m *Machine) spend(n int) {
	if n < 0 || n > m.memory {
		m.fail(outOfMemory)
	}
	m.charge(n)
}

// charge charges for what is there already, however large it is.
func (m *Machine) charge(n int) {
	m.run.charge(int64(n))
	if m.run.killed != "" {
		m.fail(m.run.killed)
	}
}

// fail ends the script with a message that no pcall keeps.
func (m *Machine) fail(message string) {
	m.run.killed = message
	m.state.RaiseError("%s", message)
}

// charge adds n bytes to the account, and looks at the heap when it is time.
func (r *Run) charge(n int64) {
	if r.charged += n; r.charged-r.looked < int64(r.m.memory/32) {
		return
	}
	first := r.looked == 0
	r.looked = r.charged
	heap := heapInUse()
	if first {
		r.base = max(heap-int64(r.m.memory/32), 0)
	}
	if r.charged < int64(r.m.memory) || heap-r.base < int64(r.m.memory) {
		return
	}
	runtime.GC()
	if heapInUse()-r.base >= int64(r.m.memory) {
		r.killed = outOfMemory
	}
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
	if r.budget -= n; r.budget <= 0 {
		r.pause()
	}
	if r.killed != "" {
		m.state.RaiseError("%s", r.killed)
	}
}
