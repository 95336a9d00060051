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

// Faults make a server misbehave, for tests of what its clients do then, and let them watch: package redistest has the same methods for
// users. A server whose Faults was never called pays one atomic load for each command.
type Faults struct {
	server *Server

	refuse atomic.Bool
	deaf   atomic.Bool // invalidations are dropped

	mu      sync.Mutex
	latency time.Duration
	plans   []plan
	always  string // what every command is answered with; empty: it runs
	watch   func(session int64, args [][]byte)
}

// plan is what will happen to the next command of a name.
type plan struct {
	command string
	err     string // what it is answered with, and it does not run; empty: it runs and its reply is lost
}

// Faults returns the server's.
func (s *Server) Faults() *Faults {
	s.faults.CompareAndSwap(nil, &Faults{server: s})
	return s.faults.Load()
}

// Hang makes the server silent: it still accepts and reads, but runs nothing and expires nothing. Thaw ends that, and what was sent
// meanwhile is run then, as by a process that was stopped and continued.
func (f *Faults) Hang() { f.server.locked(func() { f.server.freeze(hung) }) }

// Thaw ends Hang.
func (f *Faults) Thaw() {
	s := f.server
	s.mu.Lock()
	s.thaw(hung)
	s.unlock()
}

// Refuse makes the server turn new connections away, or take them again. Dial fails; a connection by a listener is reset.
func (f *Faults) Refuse(on bool) { f.refuse.Store(on) }

// Latency makes every command wait for so long before it runs, each of a pipeline too. Commands of other connections wait at the same time.
func (f *Faults) Latency(d time.Duration) { f.locked(func() { f.latency = d }) }

// FailNext answers the next command of this name with an error instead of running it. The name is a command's ("get"), a command's and its
// subcommand's ("client tracking"), or empty for any.
func (f *Faults) FailNext(command, err string) { f.plan(plan{command, err}) }

// FailAll answers every command with an error instead of running it, until it is called with an empty one.
func (f *Faults) FailAll(err string) { f.locked(func() { f.always = err }) }

// DropReply runs the next command of this name, and cuts its connection instead of replying. What was replied before arrives.
func (f *Faults) DropReply(command string) { f.plan(plan{command, ""}) }

// DropInvalidations swallows the pushes of CLIENT TRACKING, or stops doing so.
func (f *Faults) DropInvalidations(on bool) { f.deaf.Store(on) }

// KillConnections cuts every connection.
func (f *Faults) KillConnections() { f.server.locked(f.server.cutAll) }

// Watch calls see with every command before it runs, one at a time, until Watch is called with nil. Args alias a buffer: see must copy what it
// keeps, and call nothing of the server.
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

// do is conn.do with the faults that concern a command. The server's lock is held, and is given back while the command is late.
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

// delay sends what was replied so far and lets others run, for so long. It reports false if c was cut meanwhile.
func (f *Faults) delay(c *conn, d time.Duration) bool {
	c.post()
	c.leaveEngine()
	select {
	case <-time.After(d):
	case <-c.gone:
	}
	return c.server.enter(c)
}

// takePlan returns the first plan for this command, and forgets it; f.mu is held.
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

// invalidates reports whether v is an invalidation, in RESP3's form or in that of a redirection to RESP2.
func invalidates(v resp.Value) bool {
	switch l := v.List; {
	case v.Kind == '>' && len(l) > 0:
		return l[0].Text == "invalidate"
	case v.Kind == '*' && len(l) == 3:
		return l[0].Text == "message" && l[1].Text == "__redis__:invalidate"
	}
	return false
}
