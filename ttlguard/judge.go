package ttlguard

import (
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

// verdict says whether a key has a TTL after the commands.
type verdict int

const (
	safe       verdict = iota // it has a TTL, or does not exist, or had none before and was not changed
	depends                   // it has a TTL if it had one before
	leavesNone                // it has no TTL
)

func (v verdict) String() string { return [...]string{"safe", "depends", "leaves none"}[v] }

// judgement is what commands that are sent together do to one key.
type judgement struct {
	key     string
	verdict verdict
	command string // the last one that decided it
}

// judge returns what cmds, sent in one pipeline or transaction and all executed, do to each key that they may write, in order of first
// appearance. It does not know what is in Redis.
func judge(cmds []redis.Cmder) []judgement {
	r := ruling{at: map[place]int{}}
	for _, cmd := range cmds {
		if effect := effects[cmd.Name()]; effect != nil {
			r.command = cmd.Name()
			effect(words(cmd.Args()), &r)
		}
	}
	if r.within != nil { // the queued commands are executed later, or never
		r.commit()
	}
	var out []judgement
	at := map[string]int{}
	for _, k := range r.keys {
		j := judgement{k.key, k.state.verdict(), k.by}
		if i, known := at[k.key]; !known {
			at[k.key] = len(out)
			out = append(out, j)
		} else if j.verdict > out[i].verdict { // in another database
			out[i] = j
		}
	}
	return out
}

// state is what is known of a key. The zero state: nothing.
type state struct {
	ttl   ttl
	there presence
}

type ttl int

const (
	asEver   ttl = iota // nothing was done to it
	has                 // it has one, if the key exists
	asBefore            // it has one if it had one before
	hasNone
)

type presence int

const (
	maybe presence = iota
	surely
	gone
)

func (s state) verdict() verdict {
	if s.there == gone {
		return safe
	}
	return [...]verdict{asEver: safe, has: safe, asBefore: depends, hasNone: leavesNone}[s.ttl]
}

// ruling is what the commands so far have done to the keys.
type ruling struct {
	at      map[place]int // in keys
	keys    []ruled
	command string
	db      string  // the selected database; empty: the one the connection had
	within  *ruling // the state at the beginning of the current transaction
}

// place is a key in one database. Nobody knows which database "" is. If it is also one of those selected, each of the key's two places is
// judged as if nothing had been done in the other, which is worse for the key.
type place struct{ db, key string }

type ruled struct {
	place
	state state
	by    string
}

// begin begins a transaction.
func (r *ruling) begin() {
	if r.within == nil {
		r.within = &ruling{at: maps.Clone(r.at), keys: slices.Clone(r.keys), db: r.db}
	}
}

// commit ends a transaction that may or may not have been executed: a command that is refused before it is queued undoes the others, and so
// does a watched key. So the worse state of each key counts.
func (r *ruling) commit() {
	before := r.within
	if before == nil {
		return
	}
	for i := range r.keys {
		k, was := &r.keys[i], ruled{}
		if at, known := before.at[k.place]; known {
			was = before.keys[at]
		}
		k.state = worse(was.state, k.state)
		if k.state.ttl == was.state.ttl && was.by != "" {
			k.by = was.by
		}
	}
	if r.within = nil; r.db != before.db {
		r.db = "unknown after " + r.db
	}
}

// discard ends a transaction that was not executed.
func (r *ruling) discard() {
	if r.within != nil {
		r.at, r.keys, r.db, r.within = r.within.at, r.within.keys, r.within.db, nil
	}
}

// worse returns what is known of a key that is in one of two states.
func worse(a, b state) state {
	if a.there != b.there {
		b.there = maybe
	}
	return state{max(a.ttl, b.ttl), b.there}
}

// perhaps does something to key that the server may refuse to do.
func (r *ruling) perhaps(mayFail bool, key string, do func()) {
	var before state
	if i, known := r.at[place{r.db, key}]; known {
		before = r.keys[i].state
	}
	if do(); mayFail {
		r.change(key, func(after state) state { return worse(before, after) })
	}
}

// change sets the state of key after the command, computed from the state before it.
func (r *ruling) change(key string, to func(state) state) {
	at := place{r.db, key}
	i, known := r.at[at]
	if !known {
		i = len(r.keys)
		r.at[at] = i
		r.keys = append(r.keys, ruled{place: at})
	}
	k := &r.keys[i]
	if was := k.state; !known || to(was) != was {
		k.state, k.by = to(was), r.command
	}
}

// length is what a command says about a TTL.
type length int

const (
	none    length = iota
	some           // a duration
	until          // a point in time, which may be past
	refused        // a time that Redis refuses, together with the command
)

func same(s state) state { return s }

// What commands do to a key's TTL. If a command may fail or do nothing, the outcome that is worse for the key counts.

// replaced: the key has a new value, whatever it held.
func (r *ruling) replaced(key string, l length) {
	r.change(key, func(s state) state {
		return [...]state{none: {hasNone, surely}, some: {has, surely}, until: {has, maybe}, refused: s}[l]
	})
}

// became: the key has a state that does not depend on what it was.
func (r *ruling) became(key string, s state) { r.change(key, func(state) state { return s }) }

// stored: the key has a new value, or is gone if there was nothing to store.
func (r *ruling) stored(key string) { r.became(key, state{hasNone, maybe}) }

func (r *ruling) removed(key string) { r.became(key, state{there: gone}) }

// altered: the value was changed, or created if the key did not exist. With mayFail the command may have refused its arguments and done
// neither.
func (r *ruling) altered(key string, mayFail bool) {
	r.change(key, func(s state) state {
		to := state{s.ttl, surely}
		switch {
		case s.there == gone:
			to.ttl = hasNone
		case s.there == maybe && s.ttl != hasNone:
			to.ttl = asBefore
		}
		if mayFail && s.there != surely {
			to.there = maybe
		}
		return to
	})
}

// limited: the key was given a TTL, if it exists.
func (r *ruling) limited(key string, l length) {
	r.change(key, func(s state) state {
		switch {
		case l == refused || s.there == gone:
			return s
		case l == until:
			return state{has, maybe}
		}
		return state{has, s.there}
	})
}

// limitedIfString: the same, by a command that fails if the key holds anything but a string.
func (r *ruling) limitedIfString(key string, l length) {
	r.change(key, func(s state) state {
		if l != refused && (s.there == gone || s.ttl == asEver || s.ttl == has) {
			return state{has, maybe}
		}
		return s
	})
}

// createdWith: the key was created if it did not exist. Otherwise it was left alone, perhaps together with other keys.
func (r *ruling) createdWith(key string, l length) {
	r.change(key, func(s state) state {
		switch {
		case l == refused || s.there == surely:
			return s
		case l == none || s.ttl == hasNone:
			return state{hasNone, maybe}
		case s.ttl == asBefore:
			return state{asBefore, maybe}
		}
		return state{has, maybe}
	})
}

// persisted: the key lost its TTL, if it exists.
func (r *ruling) persisted(key string) {
	r.change(key, func(s state) state {
		if s.there == gone {
			return s
		}
		return state{hasNone, s.there}
	})
}

// inherited: another key replaced this one and brought its own TTL. With mayFail the command may also have done nothing; without a source
// it fails.
func (r *ruling) inherited(from, to string, mayFail bool) { r.inheritedIn(r.db, from, to, mayFail) }

// inheritedIn is inherited for a key to in the database db.
func (r *ruling) inheritedIn(db, from, to string, mayFail bool) {
	var source state
	if i, known := r.at[place{r.db, from}]; known {
		source = r.keys[i].state
	}
	here := r.db
	r.db = db
	defer func() { r.db = here }()
	got := state{asBefore, maybe}
	switch {
	case source.there == gone:
		r.change(to, same)
		return
	case source.ttl == hasNone || source.ttl == has && source.there == surely:
		got = source
	}
	mayFail = mayFail || source.there != surely
	r.change(to, func(was state) state {
		if !mayFail {
			return got
		}
		if was.there == gone {
			was.ttl = asEver
		}
		return state{max(was.ttl, got.ttl), maybe}
	})
}

// doubted: the key may be gone, since its last element may have been taken.
func (r *ruling) doubted(key string) {
	if _, known := r.at[place{r.db, key}]; known {
		r.change(key, func(s state) state {
			if s.there == surely {
				s.there = maybe
			}
			return s
		})
	}
}
