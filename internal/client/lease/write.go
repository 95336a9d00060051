package lease

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Value is one value to set, whatever the key holds.
type Value struct {
	Key   string
	Bytes []byte
	TTL   time.Duration

	// Ends makes Set write the value's end into Bytes, which must be the record of a value. That is the earliest time at which the value can end by
	// its server's clock, as that clock was last heard. If the clock was not heard recently, Set asks the server first, with the time limit of a
	// separate request.
	Ends bool
}

// Set stores values in one trip per server. The last writer wins, and loads in flight are not stored. It returns one error per value.
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

// Raise stores values whose last eight bytes are a number, each unless the key holds a greater one. So the greatest stays, in whatever order they
// arrive. It returns one error per value.
func (g *Guard) Raise(ctx context.Context, values []Value) []error {
	calls := make([]nodes.Call, len(values))
	for i, v := range values {
		calls[i] = raise.Call([]string{v.Key}, v.Bytes, millis(v.TTL))
	}
	_, errs := g.nodes.Run(ctx, calls...)
	return errs
}

// Drawn is a number that a key counts, and how long the key lives.
type Drawn struct {
	Number int64
	Left   time.Duration
}

// Draw makes the number at the end of a record greater than it was, and at least the server's time in microseconds. If there is no record, form
// becomes the record, with that number. Simultaneous draws, from any process, each get a number of their own. A number is greater than all earlier
// ones even if the record was lost in between, unless the server's clock was set back too. With only Draw changes no number, and returns the
// current one. Either way the record lives for least afterwards: if it would not, it gets form's TTL.
func (g *Guard) Draw(ctx context.Context, form Value, least time.Duration, only bool) (Drawn, error) {
	draws := 1
	if only {
		draws = 0
	}
	number, left, err := g.nodes.Pair(ctx, draw.Call([]string{form.Key}, form.Bytes, millis(form.TTL), millis(least), draws))
	if err == nil && len(number) != 8 {
		err = fmt.Errorf("the number drawn has %d bytes", len(number))
	}
	if err != nil {
		return Drawn{}, err
	}
	return Drawn{int64(binary.BigEndian.Uint64([]byte(number))), time.Duration(left) * time.Millisecond}, nil
}

// Replace stores value if the key still holds exactly the bytes that were seen, and reports whether it did.
func (g *Guard) Replace(ctx context.Context, key string, seen Found, value []byte, ttl time.Duration) (bool, error) {
	node, err := g.nodes.Of(ctx, key)
	if err != nil {
		return false, err
	}
	did, errs := node.RunOnce(ctx, seen.swap(key, value, ttl))
	return did[0], errs[0]
}

// Delete removes keys and ends the right to fill them, in one trip per server. With Hold it leaves tombstones, and shortens none. It returns one error per
// key; if that is not nil, the key may or may not have been removed.
func (g *Guard) Delete(ctx context.Context, keys []string) []error {
	if g.hold > 0 {
		calls := make([]nodes.Call, len(keys))
		for i, key := range keys {
			calls[i] = bury.Call([]string{key}, record.AppendTombstone(nil, record.NewID()), millis(g.hold))
		}
		_, errs := g.nodes.Run(nodes.Within(ctx, g.timeout), calls...)
		return errs
	}
	return g.write(ctx, keys, (*nodes.Node).Ask, func(_ context.Context, _ *nodes.Node, i int) []redis.Cmder {
		if g.plain {
			return []redis.Cmder{redis.NewIntCmd(ctx, "del", SiblingName(keys[i]), keys[i])}
		}
		return []redis.Cmder{redis.NewIntCmd(ctx, "del", keys[i])}
	})
}

// DeleteFound is Delete for a guard with neither Plain nor Hold, and returns how many of the keys existed. A DEL whose reply was lost may
// have been repeated, and found nothing the second time.
func (g *Guard) DeleteFound(ctx context.Context, keys []string) (found int, errs []error) {
	dels := make([]*redis.IntCmd, len(keys))
	errs = g.write(ctx, keys, (*nodes.Node).Ask, func(_ context.Context, _ *nodes.Node, i int) []redis.Cmder {
		dels[i] = redis.NewIntCmd(ctx, "del", keys[i])
		return []redis.Cmder{dels[i]}
	})
	for _, del := range dels {
		if del != nil { // nil: no server was found for it
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
		lost := ask(node, nodes.Within(ctx, g.timeout), cmds...) // the time spent on learning the clock does not count
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

// Clear removes every key that begins with prefix, and every lease with it, from every master. After each step it reports to removed how
// many it removed, on a cluster from several goroutines. A key written while it runs may stay. With Hold, tombstones stay.
func (g *Guard) Clear(ctx context.Context, prefix string, removed func(n int)) error {
	patterns := []string{keyform.Glob(prefix)}
	if g.plain { // leases first: a load that ends in between is then not stored
		patterns = []string{keyform.Glob(keyform.Reserved+"lease:{") + "}:" + keyform.Glob(prefix), keyform.Glob(prefix)}
	}
	return g.nodes.Masters(ctx, func(ctx context.Context, node *nodes.Node) error {
		for _, pattern := range patterns {
			if err := g.clear(ctx, node, pattern, removed); err != nil {
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

func (g *Guard) clear(ctx context.Context, node *nodes.Node, pattern string, removed func(n int)) error {
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
			n, err := g.unlink(ctx, node, keys)
			if err != nil {
				return err
			}
			removed(n)
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// unlink removes keys one by one, as they lie in many slots.
func (g *Guard) unlink(ctx context.Context, node *nodes.Node, keys []string) (n int, err error) {
	if g.hold > 0 {
		tombstone, calls := record.AppendTombstone(nil, record.NewID()), make([]nodes.Call, len(keys))
		for i, key := range keys {
			calls[i] = sweep.Call([]string{key}, tombstone)
		}
		did, errs := node.Run(ctx, calls...)
		for _, one := range did {
			if one {
				n++
			}
		}
		return n, errors.Join(errs...)
	}
	cmds := make([]redis.Cmder, len(keys))
	for i, key := range keys {
		cmds[i] = redis.NewIntCmd(ctx, "unlink", key)
	}
	if err := node.Ask(ctx, cmds...); err != nil {
		return 0, err
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil {
			return n, err
		}
		n += int(cmd.(*redis.IntCmd).Val())
	}
	return n, nil
}
