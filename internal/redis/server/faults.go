package server

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// Faults make a server misbehave, for tests of how its clients react, and let tests watch its commands: package redistest has the same
// methods for users. A server whose Faults was never called pays one atomic load for each command.
type Faults struct {
	server *Server

	refuse atomic.Bool
	deaf   atomic.Bool // invalidations are dropped

	mu      sync.Mutex
	latency time.Duration
	plans   []plan
	always  string // the error that answers every command; empty: commands run
	watch   func(session int64, args [][]byte)
}

// plan is what will happen to the next command of a given name.
type plan struct {
	command string
	err     string // answers the command, which is not run; empty: the command runs and its reply is lost
}

// Faults returns the server's faults.
func (s *Server) Faults() *Faults {
	s.faults.CompareAndSwap(nil, &Faults{server: s})
	return s.faults.Load()
}

// Hang makes the server silent: it still accepts and reads, but runs and expires nothing. Thaw ends that, and then the commands that arrived
// meanwhile are run, as by a process that was stopped and continued.
func (f *Faults) Hang() { f.server.locked(func() { f.server.freeze(hung) }) }

// Thaw ends Hang.
func (f *Faults) Thaw() {
	s := f.server
	s.mu.Lock()
	s.thaw(hung)
	s.unlock()
}

// Refuse makes the server turn new connections away, or accept them again. Dial fails; a connection through a listener is reset.
func (f *Faults) Refuse(on bool) { f.refuse.Store(on) }

// Latency delays every command by d before it runs, each command of a pipeline too. Connections wait at the same time, not one after the
// other.
func (f *Faults) Latency(d time.Duration) { f.locked(func() { f.latency = d }) }

// FailNext answers the next command of this name with an error instead of running it. The name is that of a command ("get"), of a command and
// its subcommand ("client tracking"), or empty for any command.
func (f *Faults) FailNext(command, err string) { f.plan(plan{command, err}) }

// FailAll answers every command with an error instead of running it, until FailAll("").
func (f *Faults) FailAll(err string) { f.locked(func() { f.always = err }) }

// DropReply runs the next command of this name, and cuts its connection instead of replying. Earlier replies still arrive.
func (f *Faults) DropReply(command string) { f.plan(plan{command, ""}) }

// DropInvalidations swallows the pushes of CLIENT TRACKING, or stops doing so.
func (f *Faults) DropInvalidations(on bool) { f.deaf.Store(on) }

// KillConnections cuts every connection.
func (f *Faults) KillConnections() { f.server.locked(f.server.cutAll) }

// Watch calls see with every command before it runs, one at a time, until Watch(nil). Args alias a buffer: see must copy what it keeps, and
// must not call the server.
func (f *Faults) Watch(see func(session int64, args [][]byte)) {
	f.locked(func() { f.watch = see })
}

func (f *Faults) plan(p plan) { f.locked(func() { f.plans = append(f.plans, p) }) }

func (f *Faults) locked(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// refuses reports whether new connections are turned away.
func (s *Server) refuses() bool {
	f := s.faults.Load()
	return f != nil && f.refuse.Load()
}

// do is conn.do with the faults applied. The server's lock is held, but released during a delay.
func (f *Faults) do(c *conn, args [][]byte) (outcome engine.Outcome, ok bool) {
	s := c.server
	f.mu.Lock()
	latency, see := f.latency, f.watch
	p, planned := f.takePlan(args)
	f.mu.Unlock()
	if latency > 0 && !f.delay(c, latency) {
		return 0, false
	}
	if see != nil {
		see(c.session.ID(), args)
	}
	if planned && p.err != "" {
		c.engine.Refuse(s.options.Clock(), c.session, args, p.err)
		return engine.Done, true
	}
	if !planned {
		return c.runCommand(args)
	}
	c.post()
	outcome, _ = c.runCommand(args)
	c.session.Out.Rewind(resp.Mark{})
	return outcome, false
}

// delay sends the replies so far and lets other connections run for d. It reports false if c was cut meanwhile.
func (f *Faults) delay(c *conn, d time.Duration) bool {
	c.post()
	c.leaveEngine()
	select {
	case <-time.After(d):
	case <-c.gone:
	}
	return c.server.enter(c)
}

// takePlan returns the first plan for this command, and removes it; f.mu is held.
func (f *Faults) takePlan(args [][]byte) (plan, bool) {
	if f.always != "" {
		return plan{err: f.always}, true
	}
	for i, p := range f.plans {
		if p.matches(args) {
			f.plans = slices.Delete(f.plans, i, i+1)
			return p, true
		}
	}
	return plan{}, false
}

func (p plan) matches(args [][]byte) bool {
	name, sub, both := strings.Cut(p.command, " ")
	return name == "" || strings.EqualFold(name, string(args[0])) && (!both || len(args) > 1 && strings.EqualFold(sub, string(args[1])))
}

// filter removes invalidations from output that is about to be queued.
func (f *Faults) filter(out *resp.Writer) {
	if !f.deaf.Load() {
		return
	}
	all := bytes.Clone(out.Bytes())
	src := bytes.NewReader(all)
	frames := resp.NewReader(src)
	out.Rewind(resp.Mark{})
	for at := 0; at < len(all); {
		v, err := frames.Read()
		if err != nil {
			panic("server: the engine wrote no whole frame: " + err.Error())
		}
		end := len(all) - src.Len() - frames.Buffered()
		if !invalidates(v) {
			out.Raw(string(all[at:end]))
		}
		at = end
	}
}

// invalidates reports whether v is an invalidation, as a RESP3 push or as the message of a redirection to RESP2.
func invalidates(v resp.Value) bool {
	switch l := v.List; {
	case v.Kind == '>' && len(l) > 0:
		return l[0].Text == "invalidate"
	case v.Kind == '*' && len(l) == 3:
		return l[0].Text == "message" && l[1].Text == "__redis__:invalidate"
	}
	return false
}
