package jitter_test

import (
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/jitter"
)

func Example() {
	spread := jitter.Default.Seeded(1) // Default alone draws from the process's random source
	for range 3 {
		fmt.Println(spread.TTL(time.Hour))
	}
	fmt.Println(jitter.Spread{}.TTL(time.Hour))
	// Output:
	// 58m5.005s
	// 1h4m55.169s
	// 1h3m56.725s
	// 1h0m0s
}
