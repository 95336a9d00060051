package localsync

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Kinds of messages that processes send each other on the rung PubSub.
const (
	toldKey    = 'k' // this key has changed
	toldPrefix = 'p' // everything under this prefix may have changed
)

// Forget drops the copies of keys, which this process is about to change, and makes reads of them that are under way uninsertable.
func (t *Local) Forget(keys ...string) {
	for _, key := range keys {
		t.store.Invalidate(key)
	}
}

// ForgetAll is Forget for everything under prefix.
func (t *Local) ForgetAll(prefix string) { t.store.InvalidateAll(prefix) }

// Changed drops the copies of keys that this process has changed, and announces the change to other processes unless the server does. It
// does not wait for that. If anything goes wrong, other processes lose copies they could have kept, but never keep one they should drop: a
// change that was not acknowledged, or too many changes to name, are announced as a change of everything under their prefix. That is repeated until
// it is acknowledged or permanently refused, or until Close has waited long enough.
func (t *Local) Changed(keys ...string) {
	t.Forget(keys...)
	if t.rung() != Tracking { // others may listen, whether or not this process can
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

// announcer queues changes for other processes. One goroutine announces them; it runs only while there are any.
type announcer struct {
	of []string // the prefixes of all keys that are copied

	mu       sync.Mutex // guards the rest
	running  bool
	keys     map[string]bool
	prefixes map[string]bool // the keys under them need not be named
}

const (
	mostWaiting = 4096 // with more keys or prefixes, only what they have in common is announced
	batch       = 1024 // messages in one pipeline
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

// cover returns the prefix of copied keys that name has, or the empty prefix, which stands for everything.
func (a *announcer) cover(name string) string {
	for _, p := range a.of {
		if strings.HasPrefix(name, p) {
			return p
		}
	}
	return ""
}

// next takes some of the queue as messages. If the queue is empty, the calling goroutine must end.
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

// again puts back messages that were not acknowledged.
func (a *announcer) again(messages []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range messages {
		a.addPrefix(a.cover(m[1:]))
	}
}

// giveUp empties the queue.
func (a *announcer) giveUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.keys)
	clear(a.prefixes)
	a.running = false
}

// announce adds to the queue and makes sure that a goroutine announces it.
func (t *Local) announce(add func(a *announcer)) {
	a := &t.announcer
	a.mu.Lock()
	defer a.mu.Unlock()
	add(a)
	if !a.running {
		if a.running = t.works.Start(t.tell); !a.running {
			clear(a.keys) // the Local is closed
			clear(a.prefixes)
		}
	}
}

// tell publishes the queue until it is empty or Close has waited long enough.
func (t *Local) tell() {
	pause := firstPause
	for messages := t.announcer.next(); len(messages) > 0; messages = t.announcer.next() {
		failed := t.publish(messages)
		if len(failed) == 0 {
			pause = firstPause
			continue
		}
		t.announcer.again(failed)
		closing := t.ctx.Done() // ends the pause
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

// publish returns the messages that were not acknowledged and are worth sending again.
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

// anyAsker returns a client to publish with. Any client will do, since a cluster passes messages on to all nodes. It returns nil while no
// master is known.
func (t *Local) anyAsker() *redis.Client {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.links {
		return l.asker
	}
	return nil
}
