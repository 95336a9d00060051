// Package script runs the Lua of EVAL: Redis's sandbox around a Lua 5.1 machine. It knows no keyspace; whoever runs a script is its [Host]
// and answers its commands with replies in RESP.
//
// A script runs in steps. [Run.Step] returns when the script has ended, or when it has used its slice of instructions, so that whoever
// holds a lock around it can let others see that it is busy, or kill it.
package script

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// A step runs so many instructions, which take about a millisecond. Some take as long as their operands are large, so every so often the
// clock is asked too.
const (
	slice     = 50_000
	sliceTime = 2 * time.Millisecond
	askClock  = 1 << 7 // instructions
	longText  = 1 << 18
)

// Host answers the commands of a script.
type Host interface {
	// Call runs a command and returns its reply. Both are good until the next Call.
	Call(args [][]byte) []byte
	// Has reports whether there is a command, whatever its arguments.
	Has(args [][]byte) bool
	// SetProto changes the protocol of the replies, 2 or 3, for the rest of the script.
	SetProto(proto int)
	// Version is what redis.REDIS_VERSION says.
	Version() string
}

// Chunk is a compiled script.
type Chunk struct {
	Sum       string // its SHA1, in hex
	Source    string
	Flagged   bool // its first line says what it is: #!lua
	NoWrites  bool // it says so there
	NoCluster bool // it says so too
	OneSlot   bool // it has such a line, which does not say allow-cross-slot-keys
	proto     *lua.FunctionProto
}

// Machine runs one script at a time. It is made at its first use and costs nothing before.
type Machine struct {
	host    Host
	state   *lua.LState
	globals *lua.LTable // what a script may read
	env     *lua.LTable // what it sees of them
	sealed  map[*lua.LTable]bool
	null    *lua.LUserData // cjson.null
	empty   *lua.LTable
	memory  int // bytes that a script may hold
	proto   int
	run     *Run // the one at work
	nested  int  // its pcalls within each other
	chance  *rand.Rand
}

// NewMachine returns a machine whose scripts call host.
func NewMachine(host Host) *Machine { return &Machine{host: host, memory: maxMemory} }

const chunkName = "user_script"

// Compile parses a script. The error is what Redis replies, without the position that only Redis knows.
func Compile(sum, source string) (*Chunk, error) {
	c := &Chunk{Sum: sum, Source: source}
	body, err := c.shebang(source)
	if err != nil {
		return nil, err
	}
	if c.proto, err = compile(body); err != nil {
		return nil, fmt.Errorf("ERR Error compiling script (new function): %w", err)
	}
	return c, nil
}

// compile returns the code of a text. The error says where it is no Lua.
func compile(text string) (proto *lua.FunctionProto, err error) {
	defer func() {
		if p := recover(); p != nil { // this compiler's limits are not all errors
			err = fmt.Errorf("%s:1: function or expression too complex", chunkName)
		}
	}()
	if len(text) > maxSource {
		return nil, fmt.Errorf("%s:1: %s", chunkName, outOfMemory)
	}
	tree, err := parse.Parse(strings.NewReader(text), chunkName)
	if err == nil {
		tree, err = fence(tree)
	}
	if err == nil {
		proto, err = lua.Compile(tree, chunkName)
	}
	if err == nil {
		err = mend(proto)
	}
	if err != nil {
		return nil, compileError(err)
	}
	return proto, nil
}

// Run is one script at work.
type Run struct {
	m      *Machine
	budget int
	began  time.Time // the step
	long   bool      // it may hold long texts
	killed string
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	result lua.LValue
	err    error
	line   int
	sum    string
	account
}

// Start prepares a run of chunk. The caller calls Step until it is done, then Reply.
func (m *Machine) Start(chunk *Chunk, keys, args [][]byte) *Run {
	if m.state == nil {
		m.open()
	}
	m.proto = 2
	m.globals.RawSetString("KEYS", m.list(keys))
	m.globals.RawSetString("ARGV", m.list(args))
	r := &Run{m: m, budget: slice, began: time.Now(), sum: chunk.Sum}
	for _, given := range [][][]byte{keys, args} {
		for _, text := range given {
			r.heed(len(text))
		}
	}
	m.run, m.nested, m.chance = r, 0, newChance()
	r.next, r.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.yield = yield
		r.run(chunk)
	})
	return r
}

// Step runs the script for a slice, and reports whether it has ended.
func (r *Run) Step() (done bool) {
	_, more := r.next()
	return !more
}

// Kill makes the script fail with this message at its next step.
func (r *Run) Kill(message string) { r.killed = message }

func (r *Run) run(chunk *Chunk) {
	l := r.m.state
	whole := false // the machine can be used again
	defer func() {
		if p := recover(); p != nil { // the stack was full, also for what handles errors
			r.err = fmt.Errorf("%v", p)
		}
		if !whole {
			r.m.state = nil
		}
	}()
	l.SetContext(r)
	fn := l.NewFunctionFromProto(chunk.proto)
	fn.Env = r.m.env
	l.Push(fn)
	r.err = l.PCall(0, 1, l.NewFunction(r.locate))
	if r.err == nil {
		r.result = l.Get(-1)
	}
	l.SetTop(0)
	l.RemoveContext()
	// What a script left behind that was killed, or was large, goes with its machine.
	var api *lua.ApiError
	panicked := errors.As(r.err, &api) && api.Type == lua.ApiErrorPanic
	whole = r.killed == "" && r.due == 0 && !panicked
}

// locate runs where an error is raised, before the stack is unwound: it notes the line.
func (r *Run) locate(l *lua.LState) int {
	if r.line == 0 {
		r.line = currentLine(l)
	}
	return 1
}

// currentLine is the line that the innermost Lua function of the script is at.
func currentLine(l *lua.LState) int {
	for level := 0; ; level++ {
		d, ok := l.GetStack(level)
		if !ok {
			return 1
		}
		if _, err := l.GetInfo("Sl", d, nil); err == nil && d.CurrentLine > 0 {
			return d.CurrentLine
		}
	}
}

// A Run is the context of its Lua state, which asks for Done before each instruction. That is where a step ends.
var _ context.Context = (*Run)(nil)

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done counts instructions, and is closed once the script was killed.
func (r *Run) Done() <-chan struct{} {
	if r.budget--; r.budget <= 0 || (r.long || r.budget%askClock == 0) && r.late() {
		r.pause()
	}
	if r.killed != "" {
		return closed
	}
	return nil
}

// heed notes that the script has got n bytes. Once it may hold a long text, each comparison of its own can take as long as a step, and
// the clock is asked after every instruction.
func (r *Run) heed(n int) { r.long = r.long || n >= longText }

// late reports whether the step has had its time.
func (r *Run) late() bool { return time.Since(r.began) > sliceTime }

// pause ends a step.
func (r *Run) pause() {
	r.charge(int64(slice-r.budget) * perInstruction)
	r.yield(struct{}{})
	r.budget, r.began = slice, time.Now()
}

// Err is why Done is closed.
func (r *Run) Err() error {
	if r.killed != "" {
		return errors.New(r.killed)
	}
	return nil
}

// Deadline and Value make a Run a context; it has neither.
func (r *Run) Deadline() (t time.Time, ok bool) { return t, false }
func (r *Run) Value(any) any                    { return nil }

// Reply writes what the script returned, or, if it failed, its error, which it also returns.
func (r *Run) Reply(w *resp.Writer) (failure string) {
	if r.err != nil {
		failure = r.message()
		w.Error(failure)
		return failure
	}
	start := w.Mark()
	if !(&replier{m: r.m, w: w}).value(r.result, 0) {
		failure = r.place("ERR " + outOfMemory)
		w.Rewind(start)
		w.Error(failure)
	}
	return failure
}
