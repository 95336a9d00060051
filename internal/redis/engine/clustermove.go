package engine

import (
	"slices"

	"github.com/mayflycache/mayfly/internal/hashslot"
	"github.com/mayflycache/mayfly/internal/redis/rdb"
)

// HandOver gives the slots from first to last that e serves to another node, with their keys, as a finished resharding would: keys are
// deleted here and restored there, sessions blocked on one of them are redirected, and subscribers of a shard channel are told that they are
// no longer subscribed. The owner of both engines runs nothing else meanwhile; now and theirs are the engines' times, in unix microseconds.
func (e *Engine) HandOver(now int64, first, last int, to *Engine, theirs int64) {
	o := e.options.Cluster
	if !o.Cluster.serves(o.Node, first, last) {
		return
	}
	e.setNow(now)
	to.setNow(theirs)
	moves := func(key string) bool {
		slot := hashslot.Of(key)
		return first <= slot && slot <= last && o.Cluster.Owner(slot) == o.Node
	}
	var keys []string
	e.dbs[0].each(func(o *object) {
		if moves(o.key) {
			keys = append(keys, o.key)
		}
	})
	var waiting []*waiter
	for _, w := range e.waiters {
		if w != nil && slices.ContainsFunc(w.keys, moves) {
			waiting = append(waiting, w)
		}
	}
	var shardChannels []string
	for name := range e.pubsub[shards] {
		if moves(name) {
			shardChannels = append(shardChannels, name)
		}
	}
	slices.Sort(shardChannels)

	o.Cluster.give(first, last, o.Node, to.options.Cluster.Node)
	mine, other := e.NewSession(SessionOptions{Now: now, Trusted: true}), to.NewSession(SessionOptions{Now: theirs, Trusted: true})
	for _, key := range keys {
		e.pass(mine, []byte(key), to, other)
	}
	e.Drop(mine)
	to.Drop(other)
	for _, w := range waiting {
		e.release(w.s, e.moved(hashslot.Of(w.keys[0])))
	}
	for _, name := range shardChannels {
		e.endShardChannel(name)
	}
	to.serveReady()
}

// pass moves one key.
func (e *Engine) pass(mine *Session, key []byte, to *Engine, other *Session) {
	o := e.live(e.dbs[0], key)
	if o == nil {
		return
	}
	payload, deadline := rdb.Seal(appendValue(nil, o)), e.dbs[0].deadline(o)
	to.runAlone(other, "restore", key, decimal(deadline), payload, []byte("ABSTTL"), []byte("REPLACE"))
	e.runAlone(mine, "del", key)
}

// runAlone runs a command for no client, without any checks.
func (e *Engine) runAlone(s *Session, name string, args ...[]byte) {
	s.Out.Take(nil)
	e.run(s, commands[name], append([][]byte{[]byte(name)}, args...), &s.Out, nil)
	e.endTurn(s)
}

// endShardChannel ends the subscriptions to a shard channel that moved to another node.
func (e *Engine) endShardChannel(name string) {
	for _, s := range slices.Clone(e.pubsub[shards][name]) {
		e.unsubscribe(s, shards, name)
		s.confirm(e.pushTo(s), unsubscribed[shards], shards, []byte(name))
	}
}
