// Package effort says how much work a test does. A plain go test repeats as often as a defect needs to show; with MAYFLY_LONG=1, as
// make long and .ci/run have it, tests run at their full length; under the race detector, which makes each step about ten times
// as dear, always at the plain one.
package effort

import (
	"math/rand/v2"
	"os"
	"testing"
)

// Long reports whether tests run at their full length.
func Long() bool { return !Race && os.Getenv("MAYFLY_LONG") == "1" }

// Alone is for tests in which one goroutine does everything, or one caller asks one thing after the other: under the race detector,
// which sees nothing new there, it skips them. The plain run has them, and .ci/run those that need a program of others.
func Alone(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("one goroutine does all of it")
	}
}

// Times returns how often a test repeats something.
func Times(plain, long int) int {
	if Long() {
		return long
	}
	return plain
}

// Seed returns the seed that was given, or draws one where that is zero, and tells it: what a test that plays by chance needs to play the
// same again.
func Seed(t testing.TB, given uint64) uint64 {
	if given == 0 {
		given = rand.Uint64()
	}
	t.Logf("seed %d", given)
	return given
}
