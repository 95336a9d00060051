package checks

import (
	"os"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

func TestMain(m *testing.M) { os.Exit(processes.Main(m)) }
