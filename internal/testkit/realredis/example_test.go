package realredis_test

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// A test asks the server it was given what it can do.
func ExampleVersion() {
	v := realredis.Version{Name: "Redis", Major: 7, Minor: 4, Patch: 2} // srv.Version()
	if v.Name == "Redis" && v.AtLeast(7, 4) {
		fmt.Println(v, "has field TTL")
	}
	// Output: Redis 7.4.2 has field TTL
}
