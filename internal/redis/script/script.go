// Package script runs the Lua of EVAL: Redis's sandbox around a Lua 5.1 machine. It has no keyspace: the caller supplies a [Host], which
// answers a script's commands with RESP replies.
//
// A script runs in steps. [Run.Step] returns when the script has ended or used up its slice of instructions, so that a caller that holds a
// lock can let other clients see that it is busy, or kill it.
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

// A step runs a slice of instructions, which takes about a millisecond. Some instructions take longer with large operands, so the clock is
// read from time to time too.
const (
	slice     = 50_000
	sliceTime = 2 * time.Millisecond
	askClock  = 1 << 7 // instructions
	longText  = 1 << 18
)

// Host answers a script's commands.
type Host interface {
	// Call runs a command and returns its reply. Both are valid until the next Call.
	Call(args [][]byte) []byte
	// Has reports whether a command exists, whatever its arguments.
	Has(args [][]byte) bool
	// SetProto changes the protocol of the replies, 2 or 3, for the rest of the script.
	SetProto(proto int)
	// Version is the value of redis.REDIS_VERSION.
	Version() string
}

// Chunk is a compiled script.
type Chunk struct {
	Sum    string // its SHA1, in hex
	Source string
	Flags
	proto *lua.FunctionProto
}

// Machine runs one script at a time. Its Lua state is made at the first use and costs nothing before.
type Machine struct {
	host    Host
	state   *lua.LState                 // the running state: see protected
	waiting []*lua.LState               // the states that called it, the innermost last
	spare   []*lua.LState               // for pcalls
	globals *lua.LTable                 // what a script may read
	env     *lua.LTable                 // the script's view of globals
	strict  *lua.LTable                 // the metatable of the globals, as scripts see it
	sealed  map[*lua.LTable]*lua.LTable // what is behind the read-only tables
	null    *lua.LUserData              // cjson.null
	empty   *lua.LTable
	memory  int // bytes that a script may hold
	proto   int
	run     *Run // the one in progress
	nested  int  // how many pcalls are nested now
	chance  *rand.Rand
}

// NewMachine returns a machine whose scripts call host.
func NewMachine(host Host) *Machine { return &Machine{host: host, memory: maxMemory} }

const chunkName = "user_script"

// Compile parses a script, or returns what an earlier call made of the same one. The error is Redis's reply, without the position that only
// Redis knows.
func Compile(sum, source string) (*Chunk, error) {
	if c := shared.find(sum, source); c != nil {
		return c, nil
	}
	flags, err := ReadFlags(source)
	if err != nil {
		return nil, err
	}
	c := &Chunk{Sum: sum, Source: source, Flags: flags}
	if c.proto, err = compile(withoutFlags(source)); err != nil {
		return nil, fmt.Errorf("ERR Error compiling script (new function): %w", err)
	}
	shared.keep(c)
	return c, nil
}

// compile returns the code of a text. The error says where it is not valid Lua.
func compile(text string) (proto *lua.FunctionProto, err error) {
	defer func() {
		if p := recover(); p != nil { // the compiler panics at some of its limits
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

// Run is one script in progress.
type Run struct {
	m      *Machine
	budget int
	began  time.Time // when the step began
	long   bool      // it may hold long strings
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

// Step runs the script for one slice, and reports whether it has ended.
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
		if p := recover(); p != nil { // the stack was full, even for the error handler
			r.err = fmt.Errorf("%v", p)
		}
		if !whole {
			r.m.state, r.m.waiting, r.m.spare = nil, nil, nil
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
	// After a script that was killed or was large, the machine's state is dropped together with whatever the script left behind.
	var api *lua.ApiError
	panicked := errors.As(r.err, &api) && api.Type == lua.ApiErrorPanic
	whole = r.killed == "" && r.due == 0 && !panicked
}

// locate runs where an error is raised, before the stack is unwound, and notes the line.
func (r *Run) locate(l *lua.LState) int {
	if r.line == 0 {
		r.line = r.m.currentLine()
	}
	return 1
}

// A Run is the context of its Lua state, which calls Done before each instruction. That is where a step ends.
var _ context.Context = (*Run)(nil)

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done counts instructions; its channel is closed once the script was killed.
func (r *Run) Done() <-chan struct{} {
	if r.budget--; r.budget <= 0 || (r.long || r.budget%askClock == 0) && r.late() {
		r.pause()
	}
	if r.killed != "" {
		return closed
	}
	return nil
}

// heed notes that the script has received n bytes. Once it may hold a long string, any of its comparisons can take as long as a step, so the
// clock is read after every instruction.
func (r *Run) heed(n int) { r.long = r.long || n >= longText }

// late reports whether the step has used up its time.
func (r *Run) late() bool { return time.Since(r.began) > sliceTime }

// pause ends a step.
func (r *Run) pause() {
	r.charge(int64(slice-r.budget) * perInstruction)
	r.yield(struct{}{})
	r.budget, r.began = slice, time.Now()
}

// Err is the reason why Done is closed.
func (r *Run) Err() error {
	if r.killed != "" {
		return errors.New(r.killed)
	}
	return nil
}

// Deadline and Value make a Run a context; it has neither.
func (r *Run) Deadline() (t time.Time, ok bool) { return t, false }
func (r *Run) Value(any) any                    { return nil }

// Reply writes the script's result or its error, which it also returns.
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
