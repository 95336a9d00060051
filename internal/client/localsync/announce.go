package localsync

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// What processes tell each other on the rung PubSub.
const (
	toldKey    = 'k' // this key has changed
	toldPrefix = 'p' // everything under this prefix may have
)

// Forget drops the copies of keys, which this process is about to change, and makes what is being read of them
// uninsertable.
func (t *Local) Forget(keys ...string) {
	for _, key := range keys {
		t.store.Invalidate(key)
	}
}

// ForgetAll is Forget for everything under prefix.
func (t *Local) ForgetAll(prefix string) { t.store.InvalidateAll(prefix) }

// Changed drops the copies of keys that this process has changed, and has other processes told unless the server does it. It
// does not wait for that. Whatever goes wrong costs others copies, and never leaves them one: what was not acknowledged, or is
// too much to name, is announced as everything under its prefix, until that is acknowledged, refused for good, or
// Close has waited long enough.
func (t *Local) Changed(keys ...string) {
	t.Forget(keys...)
	if t.rung() != Tracking { // others may listen, whether this process can or not
		t.announce(func(a *announcer) { a.addKeys(keys) })
	}
}

// ChangedAll is Changed for everything under prefix.
func (t *Local) ChangedAll(prefix string) {
	t.ForgetAll(prefix)
	if t.rung() != Tracking {
		t.announce(func(a *announcer) { a.addPrefix(prefix) })
	}
}

// announcer has what waits to be told to other processes. One goroutine tells it, which lives while there is something to tell.
type announcer struct {
	of []string // the prefixes of all that is copied

	mu       sync.Mutex // guards the rest
	running  bool
	keys     map[string]bool
	prefixes map[string]bool // what is under them need not be named
}

const (
	mostWaiting = 4096 // more keys, or prefixes, are told of by what they have in common
	batch       = 1024 // in one pipeline
)

func (a *announcer) addKeys(keys []string) {
	for _, key := range keys {
		if !a.prefixes[a.cover(key)] {
			a.keys[key] = true
		}
	}
	if len(a.keys) > mostWaiting {
		for key := range a.keys {
			a.addPrefix(a.cover(key))
		}
		clear(a.keys)
	}
}

func (a *announcer) addPrefix(prefix string) {
	if len(a.prefixes) >= mostWaiting {
		all := a.prefixes
		a.prefixes = make(map[string]bool)
		for p := range all {
			a.prefixes[a.cover(p)] = true
		}
		prefix = a.cover(prefix)
	}
	a.prefixes[prefix] = true
}

// cover returns the prefix that name is copied under: the empty one, which is everything, if there is none.
func (a *announcer) cover(name string) string {
	for _, p := range a.of {
		if strings.HasPrefix(name, p) {
			return p
		}
	}
	return ""
}

// next takes some of what waits, as messages. If nothing does, the goroutine that asks is no longer wanted.
func (a *announcer) next() (messages []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	take := func(kind byte, names map[string]bool) {
		for name := range names {
			if len(messages) == batch {
				return
			}
			messages = append(messages, string(kind)+name)
			delete(names, name)
		}
	}
	take(toldPrefix, a.prefixes)
	take(toldKey, a.keys)
	a.running = len(messages) > 0
	return messages
}

// again puts back what was not acknowledged.
func (a *announcer) again(messages []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range messages {
		a.addPrefix(a.cover(m[1:]))
	}
}

// giveUp forgets all that waits.
func (a *announcer) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.keys)
	clear(a.prefixes)
	a.running = false
}

// announce adds to what waits, and sees to it that somebody tells it.
func (t *Local) announce(add func(a *announcer)) {
	a := &t.announcer
	a.mu.Lock()
	defer a.mu.Unlock()
	add(a)
	if !a.running {
		if a.running = t.works.Start(t.tell); !a.running {
			clear(a.keys) // it is closed
			clear(a.prefixes)
		}
	}
}

// tell publishes what waits, until nothing does or Close has waited long enough.
func (t *Local) tell() {
	pause := firstPause
	for messages := t.announcer.next(); len(messages) > 0; messages = t.announcer.next() {
		failed := t.publish(messages)
		if len(failed) == 0 {
			pause = firstPause
			continue
		}
		t.announcer.again(failed)
		closing := t.ctx.Done() // which ends the pause
		if t.Closed() {
			closing = nil
		}
		wait(t.telling, closing, time.After(pause))
		if t.telling.Err() != nil {
			t.announcer.giveUp()
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// publish returns the messages that were not acknowledged, and may be if they are sent again.
func (t *Local) publish(messages []string) (failed []string) {
	asker := t.anyAsker()
	if asker == nil {
		return messages
	}
	ctx, cancel := context.WithTimeout(t.telling, t.opt.Silence/2)
	defer cancel()
	cmds, _ := asker.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, m := range messages {
			pipe.Publish(ctx, changesName, m)
		}
		return nil
	})
	for i, cmd := range cmds {
		err := refusal(cmd.Err())
		if no := (refused{}); err != nil && !errors.As(err, &no) && !errors.Is(err, redis.ErrClosed) {
			failed = append(failed, messages[i])
		}
	}
	return failed
}

// anyAsker returns a client to publish by: any will do, as a cluster passes messages on to all nodes. It is nil while no master
// is known.
func (t *Local) anyAsker() *redis.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.links {
		return l.asker
	}
	return nil
}
