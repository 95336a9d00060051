package proxy

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Fault is something that happens to one request: the next request after the fault was made that has one of the given command names, separated by
// spaces, and an argument that contains the given text. Empty matches any. A transaction counts as one request, its EXEC, and matches if one
// of its commands does. If several faults match, the oldest takes the request. Requests that follow a held request on its connection are held with
// it, and meet no fault of their own.
type Fault struct {
	p                 *Proxy
	command, mentions string
	does              deed
	bytes             int           // how much of the reply gets through
	delay             time.Duration // until it is released automatically
	again             *Fault        // the fault whose request this one's repeats

	released      atomic.Bool
	arrived, done chan struct{}
	ended         sync.Once

	skip  int // matching requests still to be left alone; guarded by p.mu
	link  *link
	words []string // written once, before arrived is closed
	reply string   // written once, before done is closed
}

// deed is what a fault does.
type deed uint8

const (
	hold deed = iota
	late      // held, and its client is cut at once
	cutBefore
	cutAfter
	dropReply
	holdReply
	truncate
)

func (d deed) String() string {
	return [...]string{"held", "held, its client cut", "cut before it was sent on", "cut after it was answered", "its reply dropped", "its reply held", "its reply truncated"}[d]
}

// Hold keeps a request from the server until [Fault.Release], together with everything that follows it on its connection. The client gets no answer.
// The request is delivered even if the client has given up and closed, or was cut.
func (p *Proxy) Hold(command, mentions string) *Fault {
	return p.add(&Fault{command: command, mentions: mentions, does: hold})
}

// HoldAgain holds the repetition of f's request: the next one that begins with the same two words and comes on another connection.
func (f *Fault) HoldAgain() *Fault { return f.p.add(&Fault{does: hold, again: f}) }

// Delay is a Hold that is released automatically, d after the request came.
func (p *Proxy) Delay(command, mentions string, d time.Duration) *Fault {
	return p.add(&Fault{command: command, mentions: mentions, does: hold, delay: d})
}

// CutBefore cuts the client's connection instead of passing a request on: it is never executed.
func (p *Proxy) CutBefore(command, mentions string) *Fault {
	return p.add(&Fault{command: command, mentions: mentions, does: cutBefore})
}

// CutAfter cuts the client's connection once the server has answered a request: it was executed, and its reply is lost.
func (p *Proxy) CutAfter(command, mentions string) *Fault {
	return p.add(&Fault{command: command, mentions: mentions, does: cutAfter})
}

// DropReply drops the reply to a request, and everything after it on the connection, which stays open: the client waits.
func (p *Proxy) DropReply(command, mentions string) *Fault {
	return p.add(&Fault{command: command, mentions: mentions, does: dropReply})
}

// HoldReply keeps the reply to a request, and all that follows it on the connection, until [Fault.Release].
func (p *Proxy) HoldReply(command, mentions string) *Fault {
	return p.add(&Fault{command: command, mentions: mentions, does: holdReply})
}

// Truncate passes on the first n bytes of the reply to a request, and then cuts the connection.
func (p *Proxy) Truncate(command, mentions string, n int) *Fault {
	return p.add(&Fault{command: command, mentions: mentions, does: truncate, bytes: n})
}

func (p *Proxy) add(f *Fault) *Fault {
	f.prepare(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return f
}

func (f *Fault) prepare(p *Proxy) {
	f.p, f.command = p, strings.ToLower(f.command)
	f.arrived, f.done = make(chan struct{}), make(chan struct{})
}

// Skip leaves the next n matching requests alone, and returns f.
func (f *Fault) Skip(n int) *Fault {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	f.skip = n
	return f
}

// Arrived returns a channel that is closed when the request has come.
func (f *Fault) Arrived() <-chan struct{} { return f.arrived }

// Done returns a channel that is closed when the server has answered the request and what was held behind it, or when it is certain that it
// never will. For a reply that is dropped on purpose, it is closed when that happens.
func (f *Fault) Done() <-chan struct{} { return f.done }

// Words returns the request once it has arrived; for a transaction, the words of all its commands between MULTI and EXEC. The first word is
// in lower case.
func (f *Fault) Words() []string {
	<-f.arrived
	return f.words
}

// Reply returns the server's answer in wire format once the request is done; empty if it never answered.
func (f *Fault) Reply() string {
	<-f.done
	return f.reply
}

// Release releases a held request or reply. A request that has not come yet will not be held. Releasing twice is fine.
func (f *Fault) Release() {
	f.released.Store(true)
	f.p.mu.Lock()
	l := f.link
	f.p.faults = slices.DeleteFunc(f.p.faults, func(o *Fault) bool { return o == f })
	f.p.mu.Unlock()
	if l != nil {
		l.advance()
	}
}

// Cut cuts the client's connection on which the request came. The request stays held.
func (f *Fault) Cut() {
	<-f.arrived
	f.link.client.Close()
}

// end is called when nothing more can happen to the request.
func (f *Fault) end() { f.ended.Do(func() { close(f.done) }) }

// blocks reports whether the request, or its reply, has to wait.
func (f *Fault) blocks(does ...deed) bool {
	return f != nil && !f.released.Load() && slices.Contains(does, f.does)
}

// meet returns the fault for a request: usually nil, and always nil for a request behind a held one. A transaction has several commands.
func (p *Proxy) meet(l *link, commands [][]string, behind bool) (f *Fault) {
	p.mu.Lock()
	if !behind {
		f = p.meetLocked(l, commands)
	}
	p.noteLocked(l, commands, f)
	if f != nil {
		f.link, f.words = l, slices.Concat(commands...)
	}
	p.mu.Unlock()
	if f == nil {
		return nil
	}
	close(f.arrived)
	if f.does == late {
		l.client.Close()
	}
	if f.delay > 0 {
		p.later(f.delay, f.Release)
	}
	return f
}

func (p *Proxy) meetLocked(l *link, commands [][]string) *Fault {
	for i, f := range p.faults {
		if f.fits(l, commands) {
			if f.skip > 0 {
				f.skip--
				continue
			}
			p.faults = slices.Delete(p.faults, i, i+1)
			return f
		}
	}
	if p.random != nil && !handshake[commands[0][0]] {
		if f := p.random.draw(commands[0][0]); f != nil {
			f.prepare(p)
			return f
		}
	}
	return nil
}

func (f *Fault) fits(l *link, commands [][]string) bool {
	if first := f.again; first != nil {
		words := slices.Concat(commands...)
		return first.link != nil && first.link != l && slices.Equal(words[:min(2, len(words))], first.words[:min(2, len(first.words))])
	}
	return slices.ContainsFunc(commands, func(words []string) bool {
		if f.command != "" && !slices.Contains(strings.Fields(f.command), words[0]) {
			return false
		}
		return f.mentions == "" || slices.ContainsFunc(words[1:], func(w string) bool { return strings.Contains(w, f.mentions) })
	})
}
