package linear

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/proxy"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

const (
	peers   = 4  // processes; the last has a good network
	callers = 2  // in each process
	keys    = 4  // in a round
	calls   = 24 // of each caller in a round

	least    = 40 // histories, or the run shows nothing
	patience = 20 * time.Second
)

// bad is a network in which one write of four has a misfortune.
var bad = func() proxy.Odds {
	writes := proxy.Odds{Delay: 0.05, Late: 0.1, CutBefore: 0.01, CutAfter: 0.08, DropReply: 0.004, Truncate: 0.01, DelayReply: 0.03}
	return proxy.Odds{Delay: 0.03, CutAfter: 0.01, DelayReply: 0.02,
		Of: map[string]proxy.Odds{"set": writes, "eval": writes, "evalsha": writes, "unlink": writes}}
}()

var servers = map[string]func(t *testing.T) (addr string){
	"double":  func(t *testing.T) string { return redistest.Start(t).Addr() },
	"redis 8": func(t *testing.T) string { return realredis.Start(t, realredis.Options{}).Addr() },
}

func TestSlidingIsLinearizable(t *testing.T) {
	for name, way := range map[string]struct {
		plain   bool
		options sliding.Options
	}{
		"default": {},
		"aged":    {options: sliding.Options{MaxAge: 24 * time.Hour}},
		"atomic":  {options: sliding.Options{Atomic: true}},
		"plain":   {plain: true},
	} {
		for server, start := range servers {
			t.Run(fmt.Sprintf("%s, %s", name, server), func(t *testing.T) {
				t.Parallel()
				addr := start(t)
				var stores []store
				s := effort.Seed(t, *seed)
				for process := range peers {
					o := &redis.Options{Addr: addr, ReadTimeout: 60 * time.Millisecond, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 4 * time.Millisecond}
					if process < peers-1 {
						p := proxy.Start(t, addr)
						odds := bad
						odds.Most = *late
						p.Random(s+uint64(process), odds)
						o.Addr = p.Addr()
					}
					rdb := redis.NewClient(o)
					t.Cleanup(func() { rdb.Close() })
					ns := mayfly.Namespace[string, string]{Name: "histories", Redis: rdb, Prefix: "history:", TTL: time.Hour, Plain: way.plain}
					stores = append(stores, mayfly.Must(sliding.New(ns, way.options)))
				}
				play(t, stores)
			})
		}
	}
}

type store = *sliding.Store[string, string]

// play plays rounds with keys of their own, and checks each key's history.
func play(t *testing.T, stores []store) {
	var judged, undecided, wrong, made, unknowns int
	for begun := time.Now(); wrong == 0 && time.Since(begun) < time.Minute+length() && (time.Since(begun) < length() || judged < least); {
		for key, ops := range round(t.Context(), stores) {
			made += len(ops)
			for _, op := range ops {
				if op.Output.(answer).kind == unknown {
					unknowns++
				}
			}
			judged++
			switch check(ops, patience) {
			case porcupine.Unknown:
				undecided++
			case porcupine.Illegal:
				if wrong++; wrong == 1 {
					t.Errorf("%s is not linearizable:\n%s", key, text(ops))
				}
			}
		}
	}
	t.Logf("%d histories of %d calls, %d with an unknown outcome; %d not linearizable, %d undecided", judged, made, unknowns, wrong, undecided)
	if wrong == 0 && judged < least || undecided > judged/10 || unknowns == 0 {
		t.Error("the run is void")
	}
}

var names atomic.Int64

// round has all processes work on a few new keys, and returns the history of each.
func round(ctx context.Context, stores []store) map[string][]porcupine.Operation {
	var mu sync.Mutex
	histories := map[string][]porcupine.Operation{}
	for range keys {
		histories[fmt.Sprint("k", names.Add(1))] = nil
	}
	all := make([]string, 0, keys)
	for key := range histories {
		all = append(all, key)
	}
	begun := time.Now()
	record := func(client int, s store, key string, c call) {
		op := porcupine.Operation{ClientId: client, Input: c, Call: int64(time.Since(begun))}
		op.Output = do(ctx, s, key, c)
		op.Return = int64(time.Since(begun))
		mu.Lock()
		defer mu.Unlock()
		histories[key] = append(histories[key], op)
	}
	caller := func(client int, s store) {
		for range calls {
			c := call{do: []deed{create, write, update, update, update, read, read, remove}[rand.N(8)]}
			if c.do == create || c.do == write || c.do == update {
				c.value = fmt.Sprint("v", names.Add(1))
			}
			record(client, s, all[rand.N(keys)], c)
		}
	}
	var wg sync.WaitGroup
	for process, s := range stores {
		for n := range callers {
			wg.Go(func() { caller(process*callers+n, s) })
		}
	}
	wg.Wait()
	for range 2 { // before the last late request came, and after it
		for _, key := range all {
			record(peers*callers, stores[peers-1], key, call{do: read})
		}
		<-time.After(*late)
	}
	return histories
}

// do makes one call.
func do(ctx context.Context, s store, key string, c call) answer {
	var a answer
	var err error
	switch c.do {
	case create:
		err = s.Create(ctx, key, c.value)
	case write:
		err = s.Set(ctx, key, c.value)
	case update:
		_, err = s.Update(ctx, key, func(was string) (string, error) {
			a.was = was
			return c.value, nil
		})
	case read:
		if rand.N(2) == 0 {
			a.was, err = s.Get(ctx, key)
		} else {
			a.was, err = s.Peek(ctx, key)
		}
	case remove:
		err = s.Delete(ctx, key)
	}
	switch {
	case errors.Is(err, mayfly.ErrUnknownOutcome):
		a.kind = unknown
	case errors.Is(err, mayfly.ErrNotFound):
		a.kind = absent
	case errors.Is(err, mayfly.ErrExists):
		a.kind = exists
	case err != nil:
		a.kind = failed
	}
	return a
}

// text is a history, in the order in which the calls began.
func text(ops []porcupine.Operation) string {
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var lines []string
	for _, op := range ops {
		lines = append(lines, fmt.Sprintf("\t%v to %v, caller %d: %s", time.Duration(op.Call), time.Duration(op.Return), op.ClientId, describe(op.Input.(call), op.Output.(answer))))
	}
	return strings.Join(lines, "\n")
}
