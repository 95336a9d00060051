// Package effort says how much work a test does. A plain go test repeats things as often as a defect needs to show; with MAYFLY_LONG=1, as
// set by make long and for a few tests in .ci/run, tests run at their full length. Under the race detector, which makes each step about ten
// times as expensive, they always run at the plain length.
package effort

import (
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
)

// Long reports whether tests run at their full length.
func Long() bool { return !Race && os.Getenv("MAYFLY_LONG") == "1" }

// Alone skips a test under the race detector: for tests in which one goroutine does everything, or one caller sends one request after
// another, so that there is no race to detect. The plain run includes them, and .ci/run those that need third-party programs.
func Alone(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("one goroutine does all of it")
	}
}

// InTurns is for programs whose tests are simulations in bubbles: there, waking another processor for each turn took a third of the time, so the
// tests run on one. Under the race detector they run on all.
func InTurns() {
	if !Race {
		runtime.GOMAXPROCS(1)
	}
}

// Times returns how often a test repeats something.
func Times(plain, long int) int {
	if Long() {
		return long
	}
	return plain
}

// Seed returns the given seed, or draws one if that is zero, and logs it: a random test needs it to repeat a run.
func Seed(t testing.TB, given uint64) uint64 {
	if given == 0 {
		given = rand.Uint64()
	}
	t.Logf("seed %d", given)
	return given
}
