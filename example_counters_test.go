package mayfly_test

import (
	"context"
	"fmt"

	"github.com/mayflycache/mayfly"
)

// Counters is the Observer of the namespaces; expvar.Publish("mayfly", &counters) shows it at /debug/vars.
func ExampleCounters() {
	var counters mayfly.Counters
	counters.Observe(context.Background(), mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeHitRedis, Namespace: "users"}) // as a cache does
	for _, c := range counters.Snapshot() {
		fmt.Println(c.Namespace, c.Kind, c.Outcome, c.Events)
	}
	// Output: users read hit_redis 1
}
