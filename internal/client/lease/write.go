package lease

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Value is one value to be set, whatever is there.
type Value struct {
	Key   string
	Bytes []byte
	TTL   time.Duration

	// Ends writes into Bytes, which are the record of a value, when that ends at the earliest by its server's clock, as that was last heard. A
	// server that was not heard of late is asked, for which it has the time of a question of its own.
	Ends bool
}

// Set stores values, in one trip per server; the last writer wins, and loads in flight are not stored. It returns
// one error per value.
func (g *Guard) Set(ctx context.Context, values []Value) []error {
	keys := make([]string, len(values))
	for i, v := range values {
		keys[i] = v.Key
	}
	return g.write(ctx, keys, (*nodes.Node).AskOnce, func(ctx context.Context, node *nodes.Node, i int) []redis.Cmder {
		v := values[i]
		if v.Ends {
			record.SetEnds(v.Bytes, node.Ends(ctx, v.TTL))
		}
		cmds := []redis.Cmder{redis.NewStatusCmd(ctx, "set", v.Key, v.Bytes, "px", millis(v.TTL))}
		if g.plain {
			cmds = append(cmds, redis.NewIntCmd(ctx, "del", SiblingName(v.Key)))
		}
		return cmds
	})
}

// Raise stores values whose last eight bytes are a number, each unless a greater one is there: in whatever order they arrive, the
// greatest stays. It returns one error per value.
func (g *Guard) Raise(ctx context.Context, values []Value) []error {
	calls := make([]nodes.Call, len(values))
	for i, v := range values {
		calls[i] = raise.Call([]string{v.Key}, v.Bytes, millis(v.TTL))
	}
	_, errs := g.nodes.Run(ctx, calls...)
	return errs
}

// Replace stores value in place of just the bytes that were seen, and says whether they were still there.
func (g *Guard) Replace(ctx context.Context, key string, seen Found, value []byte, ttl time.Duration) (bool, error) {
	node, err := g.nodes.Of(ctx, key)
	if err != nil {
		return false, err
	}
	did, errs := node.RunOnce(ctx, seen.swap(key, value, ttl))
	return did[0], errs[0]
}

// Delete removes keys and ends the right to fill them, in one trip per server. With Hold it leaves tombstones. It
// returns one error per key; where that is not nil, the key may or may not have been removed.
func (g *Guard) Delete(ctx context.Context, keys []string) []error {
	return g.write(ctx, keys, (*nodes.Node).Ask, func(_ context.Context, _ *nodes.Node, i int) []redis.Cmder {
		switch {
		case g.plain:
			return []redis.Cmder{redis.NewIntCmd(ctx, "del", SiblingName(keys[i]), keys[i])}
		case g.hold > 0:
			// Removed first: a server out of memory refuses the tombstone.
			return []redis.Cmder{redis.NewIntCmd(ctx, "del", keys[i]), redis.NewStatusCmd(ctx, "set", keys[i], record.AppendTombstone(nil, record.NewID()), "px", millis(g.hold))}
		}
		return []redis.Cmder{redis.NewIntCmd(ctx, "del", keys[i])}
	})
}

// DeleteFound is Delete of a guard that is neither plain nor holds, and tells how many of the keys held anything. A DEL whose reply was
// lost may have been repeated, and then found nothing.
func (g *Guard) DeleteFound(ctx context.Context, keys []string) (found int, errs []error) {
	dels := make([]*redis.IntCmd, len(keys))
	errs = g.write(ctx, keys, (*nodes.Node).Ask, func(_ context.Context, _ *nodes.Node, i int) []redis.Cmder {
		dels[i] = redis.NewIntCmd(ctx, "del", keys[i])
		return []redis.Cmder{dels[i]}
	})
	for _, del := range dels {
		if del != nil { // else no server was found for it
			found += int(del.Val())
		}
	}
	return found, errs
}

func (g *Guard) write(ctx context.Context, keys []string, ask func(*nodes.Node, context.Context, ...redis.Cmder) error, commands func(ctx context.Context, node *nodes.Node, i int) []redis.Cmder) []error {
	errs := make([]error, len(keys))
	g.nodes.Each(ctx, keys, func(node *nodes.Node, mine []int) {
		var cmds []redis.Cmder
		of := make([][]redis.Cmder, len(mine)) // each key
		for n, i := range mine {
			of[n] = commands(ctx, node, i)
			cmds = append(cmds, of[n]...)
		}
		lost := ask(node, nodes.Within(ctx, g.timeout), cmds...) // what it took to learn the time is none of that
		for n, i := range mine {
			if errs[i] = lost; lost == nil {
				for _, cmd := range of[n] {
					errs[i] = errors.Join(errs[i], cmd.Err())
				}
			}
		}
	}, func(i int, err error) { errs[i] = err })
	return errs
}

// Clear removes every key that begins with prefix, and with it every lease, from every master, and tells removed how
// many after each step, from several goroutines on a cluster. A key written while it runs may stay.
func (g *Guard) Clear(ctx context.Context, prefix string, removed func(n int)) error {
	patterns := []string{keyform.Glob(prefix)}
	if g.plain { // first the leases: a load that ends between the two is then not stored
		patterns = []string{keyform.Glob(keyform.Reserved+"lease:{") + "}:" + keyform.Glob(prefix), keyform.Glob(prefix)}
	}
	return g.nodes.Masters(ctx, func(ctx context.Context, node *nodes.Node) error {
		for _, pattern := range patterns {
			if err := clear(ctx, node, pattern, removed); err != nil {
				return err
			}
		}
		return nil
	})
}

// Reach returns nil if every master answers a step of a search.
func (g *Guard) Reach(ctx context.Context) error {
	return g.nodes.Masters(ctx, func(ctx context.Context, node *nodes.Node) error {
		scan := redis.NewScanCmd(ctx, nil, "scan", 0, "count", 1)
		return errors.Join(node.Ask1(ctx, scan), scan.Err())
	})
}

func clear(ctx context.Context, node *nodes.Node, pattern string, removed func(n int)) error {
	const step = 500
	cursor := uint64(0)
	for {
		scan := redis.NewScanCmd(ctx, nil, "scan", cursor, "match", pattern, "count", step)
		if err := node.Ask1(ctx, scan); err != nil {
			return err
		}
		keys, next, err := scan.Result()
		if err != nil {
			return err
		}
		if len(keys) > 0 {
			cmds := make([]redis.Cmder, len(keys)) // one by one: they lie in many slots
			for i, key := range keys {
				cmds[i] = redis.NewIntCmd(ctx, "unlink", key)
			}
			if err := node.Ask(ctx, cmds...); err != nil {
				return err
			}
			n := 0
			for _, cmd := range cmds {
				if err := cmd.Err(); err != nil {
					return err
				}
				n += int(cmd.(*redis.IntCmd).Val())
			}
			removed(n)
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
