package engine

import "github.com/mayflycache/mayfly/internal/expiry"

// watch is one key that a session watches.
type watch struct {
	db  *db
	key string
	// gone: the key was past its deadline but not yet reaped when WATCH came. The transaction counts it as absent, so reaping it is no
	// change.
	gone bool
}

// touched is called for every change of a key, by s or, if s is nil, by expiry or eviction. It fails transactions that watch the key, and
// invalidates the copies of tracking sessions.
func (e *Engine) touched(d *db, key []byte, s *Session) {
	if len(d.watched) > 0 {
		e.spoil(d, key)
	}
	if e.tracking.sessions > 0 {
		e.invalidate(key, s)
	}
}

// spoil makes EXEC fail in the sessions that watch key.
func (e *Engine) spoil(d *db, key []byte) {
	for _, s := range d.watched[string(key)] {
		for i := range s.watches {
			if w := &s.watches[i]; w.db == d && w.key == string(key) {
				if w.gone && d.find(key) == nil {
					w.gone = false
				} else {
					s.spoiled = true
				}
			}
		}
	}
}

// spoilAll is spoil for every watched key that exists in d, or will once d holds the keyspace with: FLUSHDB, FLUSHALL, SWAPDB. It is called
// before the change.
func (e *Engine) spoilAll(d *db, with *keyspace) {
	for key, sessions := range d.watched {
		var next *object
		if with != nil {
			next = with.find([]byte(key))
		}
		was, will := d.find([]byte(key)) != nil, next != nil
		dead := will && expiry.Dead(with.deadline(next), e.ms)
		if !was && !will {
			continue
		}
		for _, s := range sessions {
			for i := range s.watches {
				w := &s.watches[i]
				switch {
				case w.db != d || w.key != key:
				case w.gone && !will:
					w.gone = false
				case w.gone && dead:
				case !was && dead: // absent before, and absent still
					w.gone = true
				default:
					s.spoiled = true
				}
			}
		}
	}
}

// watch adds a key of d to those watched by s.
func (e *Engine) watch(s *Session, d *db, key []byte) {
	for _, w := range s.watches {
		if w.db == d && w.key == string(key) {
			return
		}
	}
	o := d.find(key)
	name := string(key)
	s.watches = append(s.watches, watch{db: d, key: name, gone: o != nil && d.dead(o, e.ms)})
	join(&d.watched, name, s)
}

// unwatch ends all watches of s.
func (e *Engine) unwatch(s *Session) {
	for _, w := range s.watches {
		leave(w.db.watched, w.key, s)
	}
	s.watches = nil
}

// watchesDead reports whether a key that s watches has expired since WATCH, reaped or not.
func (e *Engine) watchesDead(s *Session) bool {
	for _, w := range s.watches {
		if o := w.db.find([]byte(w.key)); o != nil && !w.gone && w.db.dead(o, e.ms) {
			return true
		}
	}
	return false
}
