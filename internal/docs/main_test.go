package docs

import (
	"os"
	"testing"

	"github.com/mayflycache/mayfly/internal/processes"
)

func TestMain(m *testing.M) { os.Exit(processes.Main(m)) }
