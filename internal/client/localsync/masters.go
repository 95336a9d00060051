package localsync

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/hashslot"
)

// Moved says that a slot has moved to another server. From then on nothing is served until the masters are known again and a link listens
// to each of them. It does no I/O.
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

// followMasters keeps one link to each master of a cluster. go-redis decides which nodes are masters, as it decides where reads go.
//
// Hearing every master is enough, whichever slots each has: a key that moves is deleted on the old master, which reports that. A demoted
// master is still worth listening to: as a replica it hears what the new master does.
func (t *Local) followMasters() {
	tick := time.NewTicker(t.opt.Silence)
	defer tick.Stop()
	t.mu.Lock()
	t.unsure = true
	t.mu.Unlock()
	for first := true; ; first = false {
		err := t.relink()
		if err != nil {
			t.settle(err, func() { t.given, t.noMasters = t.given || first, err }) // Open need not wait any longer
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

// relink lists the masters and listens to exactly those.
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
	had := make(map[string]*redis.Client) // a copy, since go-redis calls Moved with its own locks held
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
