package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// Tracking tells sessions that keep copies of keys when a copy is out of date: CLIENT TRACKING.
//
// In the default mode the engine remembers which session read which key, and a change tells each of them once. With BCAST it remembers
// nothing: a change tells every session with a prefix that the key has, and the keys changed by one command come in one message. Keys of all
// databases are treated alike.

// tracker knows which sessions keep copies of which keys.
type tracker struct {
	sessions int                // that track
	readers  map[string][]int64 // default mode: ids of the sessions that read a key; some may have stopped tracking
	items    int                // total number of ids in readers
	prefixes map[string]*broadcast
	collects bool // some broadcast has changes to send
}

// broadcast is one prefix of BCAST mode.
type broadcast struct {
	sessions []*Session
	changes  map[string]*Session // since the last message: by key, the session that changed it last; nil: it expired or was evicted
}

// trackingState is one session's setup of tracking.
type trackingState struct {
	track    trackFlag
	redirect int64 // the session to tell instead; 0: this one
	prefixes []string
}

// trackFlag is a set of the flags that CLIENT TRACKINGINFO lists.
type trackFlag uint8

const (
	trackOn trackFlag = 1 << iota
	trackBcast
	trackOptIn
	trackOptOut
	trackCaching // CLIENT CACHING, for the next command: yes with OPTIN, no with OPTOUT
	trackNoLoop
	trackBroken // the session to redirect to is gone
)

func (t *trackingState) has(f trackFlag) bool { return t.track&f != 0 }

// tracksReads reports whether the keys that the session reads now must be remembered.
func (t *trackingState) tracksReads() bool {
	switch {
	case !t.has(trackOn) || t.has(trackBcast):
		return false
	case t.has(trackOptIn):
		return t.has(trackCaching)
	case t.has(trackOptOut):
		return !t.has(trackCaching)
	}
	return true
}

// remember notes the keys that a finished command read for its client, even through a script.
func (e *Engine) remember(c *call) {
	s := e.current
	if s == nil || !s.tracksReads() || c.cmd.Flags&PubSub != 0 {
		return
	}
	for _, at := range c.cmd.positions(c.args) {
		ids := e.tracking.readers[string(c.args[at])]
		if slices.Contains(ids, s.id) {
			continue
		}
		if ids == nil {
			e.shrinkReaders()
		}
		e.tracking.readers[string(c.args[at])] = append(ids, s.id)
		e.tracking.items++
	}
}

// shrinkReaders keeps the table within tracking-table-max-keys by invalidating arbitrary keys.
func (e *Engine) shrinkReaders() {
	limit := e.settings.trackingKeys
	if limit == 0 || len(e.tracking.readers) < limit {
		return
	}
	for key := range e.tracking.readers {
		e.invalidateReaders([]byte(key))
		return
	}
}

// forgetCaching ends the effect of CLIENT CACHING, which lasts for one command or transaction. It is called after each command of s.
func (e *Engine) forgetCaching(s *Session, args [][]byte) {
	if s.has(trackCaching) && s.queue == nil && !is(args[0], "CLIENT") {
		s.track &^= trackCaching
	}
}

// invalidate is called when key was changed by s, or if s is nil, expired or was evicted.
func (e *Engine) invalidate(key []byte, s *Session) {
	for prefix, b := range e.tracking.prefixes {
		if len(prefix) <= len(key) && string(key[:len(prefix)]) == prefix {
			b.changes[string(key)] = s
			e.tracking.collects = true
		}
	}
	e.invalidateReaders(key)
}

func (e *Engine) invalidateReaders(key []byte) {
	ids, ok := e.tracking.readers[string(key)]
	if !ok {
		return
	}
	delete(e.tracking.readers, string(key))
	e.tracking.items -= len(ids)
	for _, id := range ids {
		s := e.sessions[id]
		if s == nil || !s.has(trackOn) || s.has(trackBcast) || s.has(trackNoLoop) && s == e.current {
			continue
		}
		e.sendInvalidation(s, func(w *resp.Writer) {
			w.Array(1)
			w.Bulk(key)
		})
	}
}

// flushInvalidations sends what BCAST mode collected while a command ran: the keys in sorted order, leaving out a session's own changes if it
// set NOLOOP.
func (e *Engine) flushInvalidations() {
	if !e.tracking.collects {
		return
	}
	e.tracking.collects = false
	for _, prefix := range slices.Sorted(maps.Keys(e.tracking.prefixes)) {
		b := e.tracking.prefixes[prefix]
		if len(b.changes) == 0 {
			continue
		}
		all := slices.Sorted(maps.Keys(b.changes))
		for _, s := range b.sessions {
			keys := all
			if s.has(trackNoLoop) {
				keys = slices.DeleteFunc(slices.Clone(all), func(key string) bool { return b.changes[key] == s })
			}
			if len(keys) == 0 {
				continue
			}
			e.sendInvalidation(s, func(w *resp.Writer) {
				w.Array(len(keys))
				for _, key := range keys {
					w.BulkString(key)
				}
			})
		}
		clear(b.changes)
	}
}

// invalidateAll is called when a database was emptied: every tracking session must drop all its copies.
func (e *Engine) invalidateAll() {
	if e.tracking.sessions == 0 {
		return
	}
	e.flushInvalidations()
	for _, id := range slices.Sorted(maps.Keys(e.sessions)) {
		if s := e.sessions[id]; s.has(trackOn) {
			e.sendInvalidation(s, (*resp.Writer).Null)
		}
	}
	clear(e.tracking.readers)
	e.tracking.items = 0
}

// sendInvalidation tells s, or the session it redirects to, about the keys that write writes. In RESP2 a session can be told only as a
// subscriber of the channel reserved for this.
func (e *Engine) sendInvalidation(s *Session, write func(*resp.Writer)) {
	to := s
	if s.redirect != 0 {
		if to = e.sessions[s.redirect]; to == nil || to.closing {
			s.track |= trackBroken
			if s.Out.Proto == 3 {
				e.push(s, 2, "tracking-redir-broken").Int(s.redirect)
			}
			return
		}
	}
	switch {
	case to.Out.Proto == 3:
		write(e.push(to, 2, "invalidate"))
	case s.redirect != 0 && to.Subscribed(): // even when it redirects to itself
		w := e.push(to, 3, "message")
		w.BulkString("__redis__:invalidate")
		write(w)
	}
}

// track turns tracking on for s, or adds prefixes.
func (e *Engine) track(s *Session, flags trackFlag, redirect int64, prefixes []string) {
	if !s.has(trackOn) {
		e.tracking.sessions++
	}
	if e.tracking.readers == nil {
		e.tracking.readers = make(map[string][]int64)
		e.tracking.prefixes = make(map[string]*broadcast)
	}
	s.track, s.redirect = trackOn|flags, redirect
	if flags&trackBcast == 0 {
		return
	}
	if len(prefixes) == 0 {
		prefixes = []string{""}
	}
	for _, prefix := range prefixes {
		if slices.Contains(s.prefixes, prefix) {
			continue
		}
		s.prefixes = append(s.prefixes, prefix)
		b := e.tracking.prefixes[prefix]
		if b == nil {
			b = &broadcast{changes: make(map[string]*Session)}
			e.tracking.prefixes[prefix] = b
		}
		b.sessions = append(b.sessions, s)
	}
}

// untrack turns tracking off for s. The keys it read stay in the table until a change finds that the session no longer tracks.
func (e *Engine) untrack(s *Session) {
	if !s.has(trackOn) {
		return
	}
	for _, prefix := range s.prefixes {
		b := e.tracking.prefixes[prefix]
		b.sessions = slices.DeleteFunc(b.sessions, func(o *Session) bool { return o == s })
		if len(b.sessions) == 0 {
			delete(e.tracking.prefixes, prefix)
		}
	}
	s.trackingState = trackingState{}
	if e.tracking.sessions--; e.tracking.sessions == 0 {
		e.tracking = tracker{}
	}
}

// clashing returns the first two prefixes that one session may not have together, because one begins with the other: both given, or one given and
// one that the session has already.
func (s *Session) clashing(given []string) (a, b string, existing, clash bool) {
	overlap := func(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }
	for i, a := range given {
		for _, b := range s.prefixes {
			if overlap(a, b) {
				return a, b, true, true
			}
		}
		for _, b := range given[i+1:] {
			if overlap(a, b) {
				return a, b, false, true
			}
		}
	}
	return "", "", false, false
}
