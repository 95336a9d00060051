// Package foreign finds third-party programs that a test needs: a browser, a Prometheus, a Python. They are named only by environment
// variables and never searched for, so that a plain go test runs the same tests on every machine.
package foreign

import (
	"os"
	"testing"
)

// Named returns the value of the variable, the path of a program. If it is not set, the test is skipped with a line that begins
// SKIPPED-FOREIGN and can be counted. get is the command that prints the path.
func Named(t testing.TB, variable, get string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("SKIPPED-FOREIGN %s: export %s=$(%s)", t.Name(), variable, get)
	}
	return path
}
