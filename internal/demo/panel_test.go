package demo_test

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

func Example_panel() {
	s := panel.Default
	fmt.Println(s.Lease, s.Effective().Lease) // the main switch is off
	s.Mayfly, s.Connections = true, 0
	fmt.Println(s.Effective().Lease)
	fmt.Println(s.Validate())
	// Output:
	// true false
	// true
	// connections must be 1 to 1000, got 0
}
