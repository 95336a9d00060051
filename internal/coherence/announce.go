package coherence

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// What processes tell each other on the rung PubSub.
const (
	toldKey    = 'k' // this key has changed
	toldPrefix = 'p' // everything under this prefix may have
)

// Forget drops the copies of keys, which this process is about to change, and makes what is being read of them
// uninsertable.
func (t *Tier) Forget(keys ...string) {
	for _, key := range keys {
		t.store.Invalidate(key)
	}
}

// ForgetAll is Forget for everything under prefix.
func (t *Tier) ForgetAll(prefix string) { t.store.InvalidateAll(prefix) }

// Changed drops the copies of keys that this process has changed, and tells other processes where the server does not.
// What cannot be told is not: their copies live to their ends.
func (t *Tier) Changed(ctx context.Context, keys ...string) {
	t.Forget(keys...)
	if t.rung() == PubSub {
		t.tell(ctx, toldKey, keys)
	}
}

// ChangedAll is Changed for everything under prefix.
func (t *Tier) ChangedAll(ctx context.Context, prefix string) {
	t.ForgetAll(prefix)
	if t.rung() == PubSub {
		t.tell(ctx, toldPrefix, []string{prefix})
	}
}

func (t *Tier) tell(ctx context.Context, what byte, names []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.opt.Silence/2)
	defer cancel()
	t.announcer().Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, name := range names {
			pipe.Publish(ctx, changesName, string(what)+name)
		}
		return nil
	})
}

// announcer is any master: a cluster passes messages on to all nodes.
func (t *Tier) announcer() redis.UniversalClient {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.links {
		return l.asker
	}
	return t.opt.Redis
}

// told is the other end of tell.
func (t *Tier) told(message string) {
	switch {
	case message == "":
	case message[0] == toldKey:
		t.heard(message[1:])
	case message[0] == toldPrefix:
		t.drop(message[1:])
	}
}
