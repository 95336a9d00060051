package sliding_test

import (
	"os"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

// TestMain runs the tests, or one of the processes that they start.
func TestMain(m *testing.M) {
	os.Exit(processes.Main(m))
}
