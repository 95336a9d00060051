package dashboard_test

import (
	"os"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

func TestMain(m *testing.M) {
	effort.InTurns()
	os.Exit(processes.Main(m))
}
