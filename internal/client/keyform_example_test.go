package client_test

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/client/keyform"
)

func Example_keyform() {
	form, err := keyform.Of[int64](nil)
	if err != nil {
		panic(err)
	}
	key, err := form([]byte("cache:user:"), 1001)
	fmt.Println(string(key), err)
	// Output: cache:user:1001 <nil>
}
