package mayfly

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Counters is an Observer that counts Events, for programs without Prometheus. Its zero value is ready; one serves any number of
// namespaces. It is an [expvar.Var]:
//
//	var counters mayfly.Counters // the Observer of the namespaces
//	expvar.Publish("mayfly", &counters)
type Counters struct {
	events sync.Map // of *counter, by countKey

	mu    sync.Mutex // guards local
	local map[string][]func() uint64
}

// Count is how often one thing happened.
type Count struct {
	Namespace string        `json:"namespace,omitempty"`
	Kind      string        `json:"kind"`
	Outcome   Outcome       `json:"outcome"`
	Events    uint64        `json:"events"`
	N         uint64        `json:"n,omitempty"`       // keys, values or bytes, if the Events had them
	Took      time.Duration `json:"took_ns,omitempty"` // total, if it was measured
}

type countKey struct {
	namespace string
	kind      Kind
	outcome   Outcome
}

type counter struct{ events, n, took atomic.Uint64 }

// OutcomeHitLocal is the outcome of reads that found a copy in the local tier. No Event has it: see [Observer].
const OutcomeHitLocal Outcome = "hit_local"

// Observe counts e.
func (c *Counters) Observe(_ context.Context, e Event) {
	key := countKey{e.Namespace, e.Kind, e.Outcome}
	found, ok := c.events.Load(key)
	if !ok {
		found, _ = c.events.LoadOrStore(key, new(counter))
	}
	n := found.(*counter)
	n.events.Add(1)
	n.n.Add(uint64(max(e.N, 0)))
	n.took.Add(uint64(max(e.Took, 0)))
}

// ObserveLocal counts the local hits of a cache.
func (c *Counters) ObserveLocal(namespace string, hits func() uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.local == nil {
		c.local = make(map[string][]func() uint64)
	}
	c.local[namespace] = append(c.local[namespace], hits)
}

// Snapshot returns the counts, by namespace, kind and outcome.
func (c *Counters) Snapshot() []Count {
	all := []Count{}
	c.events.Range(func(key, found any) bool {
		k, n := key.(countKey), found.(*counter)
		all = append(all, Count{k.namespace, k.kind.String(), k.outcome, n.events.Load(), n.n.Load(), time.Duration(n.took.Load())})
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for namespace, caches := range c.local {
		hits := uint64(0)
		for _, of := range caches {
			hits += of()
		}
		all = append(all, Count{Namespace: namespace, Kind: KindRead.String(), Outcome: OutcomeHitLocal, Events: hits})
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Outcome, b.Outcome))
	})
	return all
}

// String returns the snapshot as JSON.
func (c *Counters) String() string {
	text, _ := json.Marshal(c.Snapshot()) // of strings and numbers: it cannot fail
	return string(text)
}
