package sliding

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/keyform"
)

// Item is one value of [Store.All].
type Item[V any] struct {
	Key   string // the part after the namespace's prefix
	Value V
}

// scanCount is how many keys Redis looks at per command: few enough that other clients do not wait, enough to make progress.
const scanCount = 500

// All iterates over the values of the namespace, on all masters of a cluster and all shards of a ring, in no particular order, without renewing
// them. A value that exists during the whole iteration comes at least once, and may come twice; others may or may not come. All ends after the
// first command that fails. A value that cannot be decoded yields an error with its key, and the iteration continues.
func (s *Store[K, V]) All(ctx context.Context) iter.Seq2[Item[V], error] {
	return func(yield func(Item[V], error) bool) {
		nodes, err := masters(ctx, s.room.Redis)
		for _, node := range nodes {
			if err != nil {
				break
			}
			var cursor uint64
			for more := true; more && err == nil; more = cursor != 0 {
				var keys []string
				if keys, cursor, err = node.ScanType(ctx, cursor, keyform.Glob(s.room.Prefix), scanCount, "string").Result(); err == nil {
					if err = s.page(ctx, node, keys, yield); errors.Is(err, errStop) {
						return
					}
				}
			}
		}
		if err != nil {
			yield(Item[V]{}, fmt.Errorf("sliding: list keys %q: %w", s.room.Prefix+"*", err))
		}
	}
}

var errStop = errors.New("the caller has seen enough")

// page yields the values of keys.
func (s *Store[K, V]) page(ctx context.Context, node redis.UniversalClient, keys []string, yield func(Item[V], error) bool) error {
	pipe := node.Pipeline()
	for _, key := range keys {
		pipe.Get(ctx, key)
	}
	cmds, _ := pipe.Exec(ctx)
	for i, cmd := range cmds {
		raw, err := cmd.(*redis.StringCmd).Bytes()
		if errors.Is(err, redis.Nil) {
			continue // the value is gone
		}
		if err != nil {
			return err
		}
		item := Item[V]{Key: strings.TrimPrefix(keys[i], s.room.Prefix)}
		item.Value, err = s.decode(raw)
		if !yield(item, s.room.Fail("read", keys[i], err)) {
			return errStop
		}
	}
	return nil
}

// masters returns the clients of all nodes that hold keys: the server itself, the masters of a cluster, or the shards of a ring.
func masters(ctx context.Context, rdb redis.UniversalClient) (nodes []redis.UniversalClient, err error) {
	var mu sync.Mutex // guards nodes
	add := func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	}
	switch rdb := rdb.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(ctx, add)
	case *redis.Ring:
		err = rdb.ForEachShard(ctx, add)
	default:
		nodes = []redis.UniversalClient{rdb}
	}
	return nodes, err
}
