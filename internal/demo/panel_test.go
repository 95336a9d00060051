package demo_test

import (
	"fmt"
	"testing"
	"time"

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

// Durations are rounded by little, and percentiles of several times are those of all that was counted.
func TestTook(t *testing.T) {
	var none panel.Took
	if none.At(0.5) != 0 {
		t.Error("no durations have a median")
	}
	early, late := make(panel.Took), make(panel.Took)
	for i := range 1000 {
		early.Add(time.Duration(i) * time.Millisecond)
		late.Add(time.Duration(1000+i) * time.Millisecond)
	}
	all := make(panel.Took)
	all.AddAll(early)
	all.AddAll(late)
	for share, want := range map[float64]time.Duration{0: 0, 0.5: time.Second, 0.99: 1980 * time.Millisecond, 1: 1999 * time.Millisecond} {
		if got := all.At(share); (got - want).Abs() > want*3/100 {
			t.Errorf("%v of them took %v at most, want %v", share, got, want)
		}
	}
	if len(all) > 200 {
		t.Errorf("%d different durations are kept", len(all))
	}
	all = make(panel.Took)
	all.Add(-time.Second)
	if all.At(1) != 0 {
		t.Errorf("a clock that went back: %v", all)
	}
}
