package earlyrefresh_test

import (
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/earlyrefresh"
)

// A value with a TTL of one minute whose load takes half a second, asked with the same draw as its end comes near.
func Example() {
	policy := earlyrefresh.XFetch(1)
	for _, remaining := range []time.Duration{40 * time.Second, 5 * time.Second, 500 * time.Millisecond} {
		fmt.Println(remaining, policy.Due(time.Minute, remaining, 500*time.Millisecond, 0.6))
	}
	// Output:
	// 40s false
	// 5s false
	// 500ms true
}
