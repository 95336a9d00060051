package localsync

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/hashslot"
)

// Moved says that a slot is somewhere else than it was: nothing is served before it is known who the masters are, and all
// of them are listened to. It does no I/O.
func (t *Local) Moved() {
	if t.cluster == nil || t.Closed() {
		return
	}
	t.settle(nil, func() { t.unsure = true })
	t.lost()
	select {
	case t.recheck <- struct{}{}:
	default:
	}
}

// followMasters keeps one link to each master of a cluster. go-redis decides who is one, as it decides where reads go.
//
// It is enough to hear every master, whoever has which slot: a key that moves is deleted on the old one, which tells. A
// master that was demoted is still worth listening to, too: it hears, as a replica, what the new one does.
func (t *Local) followMasters() {
	tick := time.NewTicker(t.opt.Silence)
	defer tick.Stop()
	t.mu.Lock()
	t.unsure = true
	t.mu.Unlock()
	for first := true; ; first = false {
		err := t.relink()
		if err != nil {
			t.settle(err, func() { t.given, t.noMasters = t.given || first, err }) // Open need not wait for more
		}
		if awake, asleep := t.sleepy(); asleep {
			wait(t.ctx, awake, nil)
			if t.ctx.Err() == nil {
				continue
			}
		}
		select {
		case <-t.ctx.Done():
			return
		case <-t.recheck:
		case <-tick.C:
		}
	}
}

// relink asks who the masters are, and listens to all of them and to nobody else.
func (t *Local) relink() error {
	ctx, cancel := context.WithTimeout(t.ctx, t.opt.Silence)
	defer cancel()
	var mu sync.Mutex
	missing := make(map[*redis.Client]bool)
	err := t.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		missing[node] = true
		return nil
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	had := make(map[string]*redis.Client) // a copy: go-redis calls Moved with locks of its own held
	for tag, l := range t.links {
		had[tag] = l.node
	}
	t.mu.Unlock()
	masters := make(map[string]*redis.Client)
	for tag, node := range had {
		if owner, err := t.cluster.MasterForKey(ctx, tag); err == nil && owner == node && missing[owner] {
			delete(missing, owner)
			masters[tag] = owner
		}
	}
	for slot := 0; slot < hashslot.Count && len(missing) > 0; slot++ {
		tag := hashslot.Tag(slot)
		if owner, err := t.cluster.MasterForKey(ctx, tag); err == nil && missing[owner] {
			delete(missing, owner)
			masters[tag] = owner
		}
	}
	changed := false
	t.settle(nil, func() {
		for tag, l := range t.links {
			if masters[tag] != l.node {
				l.stop()
				delete(t.links, tag)
				changed = true
			}
		}
		for tag, node := range masters {
			if t.links[tag] == nil && !t.Closed() {
				t.addLinkLocked(tag, node, tag)
				changed = true
			}
		}
		t.unsure, t.noMasters = false, nil
	})
	if changed {
		t.drop("")
	}
	return nil
}
