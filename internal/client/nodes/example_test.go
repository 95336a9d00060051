package nodes_test

import (
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

func Example() {
	var b nodes.Breaker
	now := time.Now()
	for range nodes.Threshold {
		b.Failure(now, 1)
	}
	fmt.Println(b.Allow(now) == nodes.Refuse)
	fmt.Println(b.Allow(now.Add(nodes.Open)) == nodes.Probe)
	fmt.Println(b.Success(), b.Allow(now) == nodes.Pass)
	// Output:
	// true
	// true
	// true true
}
