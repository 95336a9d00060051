package engine_test

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/redis/engine"
)

func Example() {
	e := engine.New(engine.Options{})
	s := e.NewSession(engine.SessionOptions{})
	now := int64(1_800_000_000_000_000) // unix microseconds
	e.Do(now, s, [][]byte{[]byte("SELECT"), []byte("99")})
	fmt.Printf("%q", s.Out.Bytes())
	// Output: "-ERR DB index is out of range\r\n"
}
