package expiry_test

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/expiry"
)

func Example() {
	var x expiry.Index
	now := int64(1_700_000_000_000)
	x.Set(7, now+1000) // slot 7 lives for a second
	x.Set(8, now+60_000)

	at, _ := x.Next()
	fmt.Println("wake in", at-now, "ms")

	x.Set(7, now+2000) // it was used: a second more
	fmt.Println("dead at the old time:", expiry.Dead(x.Deadline(7), now+1001))

	now += 2001
	n := x.Reap(now, 100, func(id uint32) { fmt.Println("release slot", id) })
	fmt.Println(n, "reaped,", x.Len(), "left")
	// Output:
	// wake in 1001 ms
	// dead at the old time: false
	// release slot 7
	// 1 reaped, 1 left
}

func ExampleCycle() {
	var x expiry.Index
	for id := range uint32(100) {
		x.Set(id, int64(1+id%2*1000)) // half of them end at 1, half at 1001
	}
	next := uint64(0)
	draw := func() uint64 { next += 0x9e3779b97f4a7c15; return next } // even enough for an example

	tested, dead := expiry.Cycle{}.Step(&x, 500, draw, func(id uint32) {})
	fmt.Println(tested, "tested,", dead, "dead, again:", float64(dead) > 0.25*float64(tested))
	// Output: 20 tested, 10 dead, again: true
}
