package testkit_test

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/testkit/backends"
)

func Example_backends() {
	for _, b := range backends.All {
		fmt.Println(b.Name)
	}
	// Output:
	// redistest
	// miniredis
	// redis 8
	// redis 7.0
	// valkey
	// cluster
}
