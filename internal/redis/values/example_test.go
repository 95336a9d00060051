package values_test

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

func Example() {
	fmt.Println(values.ParseInt([]byte("42")))
	fmt.Println(values.ParseInt([]byte("042"))) // a string, for Redis
	// Output:
	// 42 true
	// 0 false
}
