package localsync

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
func (t *Local) Forget(keys ...string) {
	for _, key := range keys {
		t.store.Invalidate(key)
	}
}

// ForgetAll is Forget for everything under prefix.
func (t *Local) ForgetAll(prefix string) { t.store.InvalidateAll(prefix) }

// announcers is how many messages may be on their way at once.
const announcers = 256

// Changed drops the copies of keys that this process has changed, and has other processes told where the server does not tell
// them. It does not wait for that. If too many messages are on
// their way already, this one is dropped, and the copies of others live to their ends.
func (t *Local) Changed(ctx context.Context, keys ...string) {
	t.Forget(keys...)
	if t.rung() == PubSub {
		t.tell(ctx, toldKey, keys)
	}
}

// ChangedAll is Changed for everything under prefix.
func (t *Local) ChangedAll(ctx context.Context, prefix string) {
	t.ForgetAll(prefix)
	if t.rung() == PubSub {
		t.tell(ctx, toldPrefix, []string{prefix})
	}
}

func (t *Local) tell(ctx context.Context, what byte, names []string) {
	select {
	case t.announcing <- struct{}{}:
	default:
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.links { // any will do: a cluster passes messages on to all nodes
		if t.works.Start(func() {
			defer func() { <-t.announcing }()
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.opt.Silence/2)
			defer cancel()
			l.asker.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, name := range names {
					pipe.Publish(ctx, changesName, string(what)+name)
				}
				return nil
			})
		}) {
			return
		}
	}
	<-t.announcing
}
