package engine

import (
	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// Session is what the engine knows about one connection. Its fields belong to the engine, except Out.
type Session struct {
	Out resp.Writer // replies and pushes, in order. The owner sends and empties it.

	opened SessionOptions
	id     int64
	engine *Engine

	db            int
	name          string
	authenticated bool
	reply         replyMode
	noTouch       bool // CLIENT NO-TOUCH: reads leave LRU and LFU alone
	noBlock       bool // blocking commands answer at once, as in a transaction: scripts
	closing       bool
	obeys         bool // it carries out a journal or a master: no key is dead to it, and nothing is refused

	queue   *queue // of an open MULTI; nil: none
	watches []watch
	spoiled bool // a watched key was changed

	waiting *waiter  // what it is blocked on
	held    [][]byte // a command held back by a pause
	dirty   bool     // is in Engine.dirty
	pushes  resp.Writer

	// Only CLIENT LIST shows these.
	library, libraryVersion string
	last                    *Command
	lastUse                 int64 // unix microseconds
	noEvict                 bool

	replica replica
	wrote   int64 // the feed's offset after its last write

	subscriptions
	trackingState
}

// SessionOptions describe a connection.
type SessionOptions struct {
	Addr, LocalAddr string // as CLIENT LIST shows them
	Now             int64  // when it was opened, in unix microseconds
	Trusted         bool   // the owner's own: needs no password and is never redirected in a cluster
	Obeys           bool   // used for Obey
}

// NewSession opens a session.
func (e *Engine) NewSession(o SessionOptions) *Session {
	e.lastID++
	if !o.Trusted {
		e.stats.connections++
	}
	s := &Session{opened: o, id: e.lastID, engine: e, authenticated: o.Trusted || !e.settings.locked()}
	s.obeys, s.noBlock = o.Obeys, o.Obeys
	s.Out.Proto = 2
	e.sessions[s.id] = s
	return s
}

// Drop ends a session, with all that it waited for, watched or subscribed to. Dropping it again does nothing.
func (e *Engine) Drop(s *Session) {
	if e.sessions[s.id] != s {
		return
	}
	e.unpark(s)
	e.unwatch(s)
	e.unsubscribeAll(s)
	e.untrack(s)
	e.unfeed(s)
	delete(e.sessions, s.id)
	s.closing = true
}

// ID returns the number that CLIENT ID replies.
func (s *Session) ID() int64 { return s.id }

// Closing reports whether the owner must close the connection once Out is sent, after CLIENT KILL by another session.
func (s *Session) Closing() bool { return s.closing }

// Waiting reports whether the session is blocked and must not run a command.
func (s *Session) Waiting() bool { return s.waiting != nil }

// replyMode is what CLIENT REPLY set.
type replyMode uint8

const (
	replyOn replyMode = iota
	replyOff
	replySkip // for the next command's reply only
)

// pushTo returns the writer for a push to s: its Out, or, while s runs a command, a buffer that is sent after that command's reply.
func (e *Engine) pushTo(s *Session) *resp.Writer {
	if s == e.current {
		s.pushes.Proto = s.Out.Proto
		return &s.pushes
	}
	e.markDirty(s)
	return &s.Out
}

// push begins a push of n parts to s, the first of which is word, and returns the writer for the rest.
func (e *Engine) push(s *Session, n int, word string) *resp.Writer {
	w := e.pushTo(s)
	w.Push(n)
	w.BulkString(word)
	return w
}

// markDirty adds s to what Dirty returns.
func (e *Engine) markDirty(s *Session) {
	if !s.dirty {
		s.dirty = true
		e.dirty = append(e.dirty, s)
	}
}

// kill makes the owner close the connection of s.
func (e *Engine) kill(s *Session) {
	s.closing = true
	e.markDirty(s)
}
