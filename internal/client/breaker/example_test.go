package breaker_test

import (
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/internal/client/breaker"
)

func Example() {
	var b breaker.Breaker
	now := time.Now()
	for range breaker.Threshold {
		b.Failure(now)
	}
	fmt.Println(b.Allow(now) == breaker.Refuse)
	fmt.Println(b.Allow(now.Add(breaker.Open)) == breaker.Probe)
	fmt.Println(b.Success(), b.Allow(now) == breaker.Pass)
	// Output:
	// true
	// true
	// true true
}
