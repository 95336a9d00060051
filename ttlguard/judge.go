package ttlguard

import (
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

// verdict says whether a key ends after what is done to it.
type verdict int

const (
	safe       verdict = iota // it has a TTL, or is not there, or had none before and was not changed
	depends                   // it has a TTL if it had one before
	leavesNone                // it has none
)

func (v verdict) String() string { return [...]string{"safe", "depends", "leaves none"}[v] }

// judgement is what commands that are sent together do to one key.
type judgement struct {
	key     string
	verdict verdict
	command string // the last one that made it so
}

// judge returns what cmds, sent in one pipeline or transaction and all done, do to each key that they may write, in the
// order of their first appearance. It knows nothing of what is in Redis.
func judge(cmds []redis.Cmder) []judgement {
	r := ruling{at: map[place]int{}}
	for _, cmd := range cmds {
		if effect := effects[cmd.Name()]; effect != nil {
			r.command = cmd.Name()
			effect(words(cmd.Args()), &r)
		}
	}
	if r.within != nil { // what was queued is done later, or never
		r.commit()
	}
	var out []judgement
	at := map[string]int{}
	for _, k := range r.keys {
		j := judgement{k.key, k.state.verdict(), k.by}
		if i, known := at[k.key]; !known {
			at[k.key] = len(out)
			out = append(out, j)
		} else if j.verdict > out[i].verdict { // of another database
			out[i] = j
		}
	}
	return out
}

// state is what is known of a key. Its zero is nothing.
type state struct {
	ttl   ttl
	there presence
}

type ttl int

const (
	asEver   ttl = iota // nothing was done to it
	has                 // it has one, if it is there
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

// ruling is what the commands so far have made of the keys.
type ruling struct {
	at      map[place]int // in keys
	keys    []ruled
	command string
	db      string  // that was selected; empty: the one that the connection had
	within  *ruling // what was known when the transaction began that runs
}

// place is a key in one database. Which one "" is nobody knows: if it is one of those that were selected, too, each of its two places is
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

// commit ends a transaction that was executed, or was not: a command that is refused before it is queued undoes the others, and so does a
// watched key. So what is worse for a key counts.
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

// worse is what is known of a key that is in one of two states.
func worse(a, b state) state {
	if a.there != b.there {
		b.there = maybe
	}
	return state{max(a.ttl, b.ttl), b.there}
}

// perhaps does something to key that the server may refuse.
func (r *ruling) perhaps(mayFail bool, key string, do func()) {
	var before state
	if i, known := r.at[place{r.db, key}]; known {
		before = r.keys[i].state
	}
	if do(); mayFail {
		r.change(key, func(after state) state { return worse(before, after) })
	}
}

// change says what the command does to key, by the state it was in.
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
	some           // so much time
	until          // up to a time, which may be over
	refused        // a time that Redis refuses, and the command with it
)

func same(s state) state { return s }

// The things that commands do to a key's TTL. Where a command may fail or do nothing, the worse outcome for the key counts.

// replaced is a key with a new value, whatever it was.
func (r *ruling) replaced(key string, l length) {
	r.change(key, func(s state) state {
		return [...]state{none: {hasNone, surely}, some: {has, surely}, until: {has, maybe}, refused: s}[l]
	})
}

// became is a key whose state says nothing of what it was.
func (r *ruling) became(key string, s state) { r.change(key, func(state) state { return s }) }

// stored is a key with a new value, or gone if there was nothing to store.
func (r *ruling) stored(key string) { r.became(key, state{hasNone, maybe}) }

func (r *ruling) removed(key string) { r.became(key, state{there: gone}) }

// altered is a value that was changed, or created if there was none. With mayFail the command may have refused its other arguments, and
// done neither.
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

// limited is a key that was given a TTL, if it is there.
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

// limitedIfString is limited by a command that fails if the key holds anything but a string.
func (r *ruling) limitedIfString(key string, l length) {
	r.change(key, func(s state) state {
		if l != refused && (s.there == gone || s.ttl == asEver || s.ttl == has) {
			return state{has, maybe}
		}
		return s
	})
}

// createdWith is a key that was created if it was not there, and else left alone, perhaps with others.
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

// persisted is a key that lost its TTL, if it is there.
func (r *ruling) persisted(key string) {
	r.change(key, func(s state) state {
		if s.there == gone {
			return s
		}
		return state{hasNone, s.there}
	})
}

// inherited is a key that was replaced by another with that one's TTL; or was not, if the command may fail, as it does
// without a source.
func (r *ruling) inherited(from, to string, mayFail bool) { r.inheritedIn(r.db, from, to, mayFail) }

// inheritedIn is inherited where the other key is in the database db.
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

// doubted is a key that may be gone: the last of it was taken.
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
